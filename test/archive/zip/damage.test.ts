import { deflateRawSync } from 'node:zlib'
import fc from 'fast-check'
import { expect } from 'vitest'
import { MirrorError } from '../../../src/base/errors.ts'
import { soundMember, writeRawZip } from '../../sandbox/faults/raw-zip.ts'
import { type NamedContent, contents, openBytes, pack, readAll } from './archives.ts'
import { bothTest, LONG, longTest, test } from '../../support/tables.ts'

const MEMBERS: NamedContent[] = [
  ['ROOT-1.json', '{"id":"ROOT-1","modified":"2026-05-01T00:00:00Z"}'],
  ['ünï.json', '{"id":"ünï"}'],
  ['empty', ''],
  ['long', 'all work and no play '.repeat(20)],
]
const CONTENTS = Object.fromEntries(MEMBERS.map(([name, text]) => [name, Buffer.from(text).toString('latin1')]))

/** Opens and reads damaged bytes; null when the archive is refused. Anything but an `archive` refusal is thrown. */
async function survivors(bytes: Buffer): Promise<Record<string, string | undefined> | null> {
  try {
    return contents(await readAll(openBytes(bytes).reader))
  } catch (error) {
    if (error instanceof MirrorError && error.code === 'archive') return null
    throw error
  }
}

/** Whatever is given out was put in, under that name: damage is refused or does not matter. */
async function expectRefusedOrIdentical(bytes: Buffer, what: string): Promise<boolean> {
  const left = await survivors(bytes)
  if (left !== null) expect(CONTENTS, what).toMatchObject(left)
  return left !== null
}

test('an archive cut short at any byte is refused as a whole', async () => {
  const zip = pack(MEMBERS)
  for (let length = 0; length < zip.length; length++) {
    expect(await survivors(zip.subarray(0, length)), `cut at ${length}`).toBeNull()
  }
})

test('an archive that lost any number of bytes at its beginning is refused as a whole', async () => {
  const zip = pack(MEMBERS)
  for (let from = 1; from <= zip.length; from++) {
    expect(await survivors(zip.subarray(from)), `cut up to ${from}`).toBeNull()
  }
})

longTest('an archive with one changed byte is refused or gives the original contents', async () => {
  const zip = pack(MEMBERS)
  let opened = 0
  for (let at = 0; at < zip.length; at++) {
    for (const mask of [0xff, 0x01, 0x80]) {
      const turned = Buffer.from(zip)
      turned[at] = (turned[at] ?? 0) ^ mask
      if (await expectRefusedOrIdentical(turned, `byte ${at} ^ ${mask}`)) opened++
    }
  }
  expect(opened).toBeGreaterThan(0)
})

longTest(
  'an archive with stored members, descriptors or Zip64 end records and one changed byte is refused or gives the original contents',
  async () => {
    const member = soundMember('ROOT-1.json', MEMBERS[0]?.[1] ?? '')
    const text = Buffer.from(MEMBERS[0]?.[1] ?? '')
    const stored = { ...member, method: 0, data: text, compressedSize: text.length }
    const zip = writeRawZip([stored, { ...member, descriptor: true }], { comment: Buffer.from('PK') })
    const far = withZip64End(zip.subarray(0, -2))
    for (const bytes of [zip, far]) {
      expect(await expectRefusedOrIdentical(bytes, 'whole')).toBe(true)
      for (let at = 0; at < bytes.length; at++) {
        const turned = Buffer.from(bytes)
        turned[at] = (turned[at] ?? 0) ^ 0xff
        await expectRefusedOrIdentical(turned, `byte ${at}`)
      }
    }
  },
)

bothTest('an archive with several random changes is refused or gives the original contents', async () => {
  const zip = pack(MEMBERS)
  const change = fc.tuple(fc.nat(zip.length - 1), fc.nat(255))
  await fc.assert(
    fc.asyncProperty(fc.array(change, { minLength: 1, maxLength: 12 }), async (changes) => {
      const damaged = Buffer.from(zip)
      for (const [at, value] of changes) damaged[at] = value
      await expectRefusedOrIdentical(damaged, 'changed')
    }),
    { numRuns: LONG ? 2000 : 100 },
  )
})

bothTest('random bytes are refused as an archive', async () => {
  const noise = fc.oneof(
    fc.uint8Array({ maxLength: 400 }),
    fc.uint8Array({ maxLength: 200 }).map((bytes) => Buffer.concat([bytes, pack([]), bytes])),
    fc.uint8Array({ minLength: 18, maxLength: 18 }).map((bytes) => {
      const end = Buffer.concat([Buffer.from('PK\x05\x06'), bytes])
      end.writeUInt16LE(0, 20)
      return Buffer.concat([Buffer.alloc(100), end])
    }),
  )
  await fc.assert(
    fc.asyncProperty(noise, async (bytes) => {
      await expectRefusedOrIdentical(Buffer.from(bytes), 'noise')
    }),
    { numRuns: LONG ? 1000 : 50 },
  )
})

test('bytes behind a deflate stream are refused, because they would be served', async () => {
  const member = soundMember('a', 'content')
  const data = Buffer.concat([deflateRawSync('content'), Buffer.from('more')])
  const zip = writeRawZip([{ ...member, data, compressedSize: data.length }])
  const [read] = await readAll(openBytes(zip).reader)
  expect(read?.refused).toBe('has bytes after its deflate stream')
})

test('a member that inflates to less than its declared size is refused', async () => {
  const zip = writeRawZip([{ ...soundMember('a', 'content'), size: 8 }])
  const [read] = await readAll(openBytes(zip).reader)
  expect(read?.refused).toBe('inflates to 7 bytes instead of 8')
})

test('a saturated offset without its 64-bit form is refused', async () => {
  const zip = writeRawZip([{ ...soundMember('a', 'content'), offset: 0xffffffff }])
  expect(await survivors(zip)).toBeNull()
})

/** The same archive with Zip64 end records that it would not need. */
function withZip64End(zip: Buffer): Buffer {
  const end = Buffer.from(zip.subarray(-22))
  end.writeUInt16LE(0, 20)
  const count = end.readUInt16LE(10)
  const size = end.readUInt32LE(12)
  const offset = end.readUInt32LE(16)
  const far = Buffer.alloc(76)
  far.writeUInt32LE(0x06064b50, 0)
  far.writeBigUInt64LE(44n, 4)
  for (const at of [24, 32]) far.writeBigUInt64LE(BigInt(count), at)
  far.writeBigUInt64LE(BigInt(size), 40)
  far.writeBigUInt64LE(BigInt(offset), 48)
  far.writeUInt32LE(0x07064b50, 56)
  far.writeBigUInt64LE(BigInt(offset + size), 64)
  far.writeUInt32LE(1, 72)
  end.fill(0xff, 8, 20)
  return Buffer.concat([zip.subarray(0, -22), far, end])
}
