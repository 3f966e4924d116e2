import { crc32, deflateRawSync, gunzipSync } from 'node:zlib'
import fc from 'fast-check'
import { describe, expect } from 'vitest'
import { longTest, test } from '../../support/tables.ts'
import { inflateMembers, writeGzipMember } from '../../../src/base/gzip/member.ts'
import { type RawMember, soundMember, writeRawZip } from '../../sandbox/faults/raw-zip.ts'
import { createBatch } from '../../../src/archive/zip/batch.ts'
import { readMember } from '../../../src/archive/zip/member.ts'
import { LIMITS, openBytes, readAll } from './archives.ts'

const HEADER = Buffer.from([0x1f, 0x8b, 8, 0, 0, 0, 0, 0, 0, 255])

/** The end of a gzip member of this content. */
function trailer(content: Buffer): Buffer {
  const end = Buffer.alloc(8)
  end.writeUInt32LE(crc32(content))
  end.writeUInt32LE(content.length, 4)
  return end
}

/** Describes a stream as that of this content, true or not. */
function claimed(name: string, content: Buffer, data: Buffer): RawMember {
  const sizes = { size: content.length, compressedSize: data.length }
  return { name, data, method: 8, crc32: crc32(content), ...sizes }
}

const TEXT = Buffer.from('{"id":"ROOT-1"} '.repeat(4))
const OTHER = Buffer.from('{"id":"ROOT-2","modified":"2026-01-01T00:00:00Z"}')
const NOTHING = deflateRawSync(Buffer.alloc(0))
const DATA = deflateRawSync(TEXT)
const OTHER_DATA = deflateRawSync(OTHER)

/** The beginning of a stored block that takes the next bytes of the archive's neighbour into its own content. */
const SWALLOWING = Buffer.from([0, 18, 0, 18 ^ 0xff, 0xff])
const SWALLOWED = Buffer.concat([trailer(Buffer.alloc(0)), HEADER, OTHER])

/** Members whose streams are not what they are described as, though one after the other they inflate to all contents. */
const SHIFTED: Record<string, RawMember[]> = {
  'an empty gzip member before its stream': [
    claimed('a', TEXT, Buffer.concat([NOTHING, trailer(Buffer.alloc(0)), HEADER, DATA])),
    soundMember('b', OTHER),
  ],
  'an empty gzip member after its stream': [
    claimed('a', TEXT, Buffer.concat([DATA, trailer(TEXT), HEADER, NOTHING])),
    soundMember('b', OTHER),
  ],
  'its content divided among two gzip members': [
    claimed('a', Buffer.concat([TEXT, OTHER]), Buffer.concat([DATA, trailer(TEXT), HEADER, OTHER_DATA])),
    soundMember('b', OTHER),
  ],
  'the contents of all members, and a zero at which inflating ends': [
    claimed(
      'a',
      TEXT,
      Buffer.concat([
        deflateRawSync(Buffer.concat([TEXT, OTHER])),
        trailer(Buffer.concat([TEXT, OTHER])),
        Buffer.alloc(9),
      ]),
    ),
    soundMember('b', OTHER),
  ],
  'no content and a stream that runs over the next member': [
    claimed('a', Buffer.alloc(0), SWALLOWING),
    claimed('b', SWALLOWED, OTHER_DATA),
  ],
  'a stream that ends early': [claimed('a', TEXT, DATA.subarray(0, -3)), soundMember('b', OTHER)],
  'bytes after its stream': [claimed('a', TEXT, Buffer.concat([DATA, Buffer.alloc(1)])), soundMember('b', OTHER)],
  'a byte that belongs to the next member': [
    claimed('a', Buffer.concat([TEXT, OTHER.subarray(0, 1)]), DATA),
    claimed('b', OTHER.subarray(1), OTHER_DATA),
  ],
}

/** The members as gzip members, one after the other, and where each ends. */
function joined(members: readonly RawMember[]): { bytes: Buffer; ends: number[] } {
  const bytes = Buffer.alloc(members.reduce((sum, { data }) => sum + data.length + 18, 0))
  const ends: number[] = []
  for (const { data, crc32: sum, size } of members) ends.push(writeGzipMember(bytes, ends.at(-1) ?? 0, data, sum, size))
  return { bytes, ends }
}

/** What becomes of each member of an archive when it is read by itself. */
function oneByOne(zip: Buffer): unknown[] {
  const { directory } = openBytes(zip).reader
  return Array.from({ length: directory.count }, (_, i) => {
    const entry = directory.entry(i)
    const region = zip.subarray(entry.offset, directory.regionEnd(i))
    const member = readMember(entry, region, LIMITS.maxMemberBytes)
    return 'refused' in member ? member.refused : Buffer.from(member.content).toString('latin1')
  })
}

async function together(zip: Buffer): Promise<unknown[]> {
  const outcomes = await readAll(openBytes(zip).reader)
  return outcomes.map(({ content, refused }) => refused ?? content?.toString('latin1'))
}

describe('members that are inflated together', () => {
  test.each(Object.entries(SHIFTED))('are refused where one has %s', async (_, members) => {
    const { bytes, ends } = joined(members)
    expect(inflateMembers(bytes, ends)).toBeNull()
    const zip = writeRawZip([soundMember('0', 'first'), ...members, soundMember('z', 'last')])
    const outcomes = await together(zip)
    expect(outcomes).toEqual(oneByOne(zip))
    expect([outcomes[0], outcomes.at(-1)]).toEqual(['first', 'last'])
    expect(outcomes[1]).not.toBe(TEXT.toString())
    expect(outcomes.filter((outcome) => outcome === OTHER.toString()).length).toBeLessThan(2)
  })

  test('would pass by their sizes and checksums alone', () => {
    const passes = Object.values(SHIFTED).filter((members) => {
      try {
        const size = members.reduce((sum, member) => sum + member.size, 0)
        return gunzipSync(joined(members).bytes).length === size
      } catch {
        return false
      }
    })
    expect(passes.length).toBe(3)
  })

  test('are read though one is empty, stored, large, or contains what begins a gzip member', async () => {
    const magic = Buffer.concat([Buffer.from([1, 10, 0, 0xf5, 0xff]), HEADER]) // a stored block
    const noise = Buffer.from(Array.from({ length: 300_000 }, (_, i) => (i * i * 31) % 251))
    const stored = { ...claimed('d', TEXT, TEXT), method: 0 }
    const zip = writeRawZip([
      soundMember('a', TEXT),
      claimed('b', HEADER, magic),
      soundMember('c', ''),
      stored,
      soundMember('e', noise),
      claimed('f', noise, deflateRawSync(noise, { level: 0 })),
      soundMember('g', OTHER),
    ])
    const texts = [TEXT, HEADER, Buffer.alloc(0), TEXT, noise, noise, OTHER]
    expect(await together(zip)).toEqual(texts.map((text) => text.toString('latin1')))
  })

  test('are bounded in number, also those that are refused', () => {
    const { reader } = openBytes(writeRawZip([soundMember('a', TEXT)]))
    const entry = reader.directory.entry(0)
    const batch = createBatch(LIMITS.maxMemberBytes)
    const add = (): boolean => batch.add(entry, Buffer.from('no header'))
    let count = 0
    while (add() && count < 100_000) count++
    expect(count).toBeLessThan(20_000)
    expect([...batch.take()]).toHaveLength(count)
    expect(add()).toBe(true)
  })

  longTest('come to the same as each by itself, whatever is wrong with them', async () => {
    const kinds = Object.values(SHIFTED)
    const groups = fc.array(
      fc.oneof(
        fc.integer({ min: 0, max: kinds.length - 1 }).map((at) => kinds[at] ?? []),
        fc.uint8Array({ maxLength: 60 }).map((data) => [claimed('n', TEXT, Buffer.from(data))]),
        fc.string({ maxLength: 60 }).map((text) => [soundMember('s', text)]),
      ),
      { minLength: 1, maxLength: 12 },
    )
    await fc.assert(
      fc.asyncProperty(groups, async (members) => {
        const zip = writeRawZip(members.flat())
        expect(await together(zip)).toEqual(oneByOne(zip))
      }),
    )
  })
})
