import { existsSync, readFileSync, writeFileSync } from 'node:fs'
import { join } from 'node:path'
import { crc32, inflateRawSync } from 'node:zlib'
import AdmZip from 'adm-zip'
import { describe, expect } from 'vitest'
import { MirrorError } from '../../../src/base/errors.ts'
import { type RawMember, soundMember, writeRawZip } from '../../sandbox/faults/raw-zip.ts'
import { createArchiveReader, openArchive } from '../../../src/archive/zip/reader.ts'
import { type NamedContent, LIMITS, archiveRefusal, contents, openBytes, pack, readAll, scratch } from './archives.ts'
import { bothTest, LONG, longTest, test } from '../../support/tables.ts'

const REAL = join('..', 'shared', 'data', 'osv-real.zip')
/** In the long suite alone, where the records are there. */
const testOfReal = LONG ? bothTest.skipIf(!existsSync(REAL)) : (): void => undefined

/** Members of `bytes` that do not compress, so that their places are known. */
function bulky(count: number, bytes: number): RawMember[] {
  return Array.from({ length: count }, (_, i) => {
    const data = Buffer.alloc(bytes, `${i}`)
    const sizes = { size: bytes, compressedSize: bytes }
    return { name: `m-${i}`, data, method: 0, crc32: crc32(data), ...sizes }
  })
}

const only =
  (...names: string[]) =>
  ({ name }: { name: string }): boolean =>
    names.includes(name)

describe('the member reader', () => {
  test('gives each member its content and its deflate stream', async () => {
    const { reader } = openBytes(
      writeRawZip([soundMember('a', 'deflated'), ...bulky(1, 100).map((m) => ({ ...m, name: 'b' }))]),
    )
    const seen: string[] = []
    await reader.readMembers(
      () => true,
      ({ name }, member) => {
        if ('refused' in member) throw new Error(member.refused)
        expect(inflateRawSync(member.deflated).equals(member.content)).toBe(true)
        seen.push(`${name} ${member.content.toString('latin1', 0, 8)}`)
      },
    )
    expect(seen).toEqual(['a deflated', 'b 00000000'])
  })

  test('reads in the order of the file even when the directory has another order', async () => {
    const zip = pack([
      ['one', '1'],
      ['two', '2'],
      ['three', '3'],
    ])
    const start = zip.readUInt32LE(zip.length - 6)
    const entries = zip.subarray(start, zip.length - 22)
    const cuts = [0, 49, 98, entries.length]
    const parts = [2, 0, 1].map((i) => entries.subarray(cuts[i], cuts[i + 1]))
    const shuffled = Buffer.concat([zip.subarray(0, start), ...parts, zip.subarray(-22)])
    const read = await readAll(openBytes(shuffled).reader)
    expect(read.map(({ entry, content }) => [entry.name, content?.toString()])).toEqual([
      ['one', '1'],
      ['two', '2'],
      ['three', '3'],
    ])
  })

  test('reads neighbours together, in windows of a megabyte', async () => {
    const { reader, reads } = openBytes(writeRawZip(bulky(100, 50_000)))
    const read = await readAll(reader)
    expect(read.every(({ content }) => content !== null)).toBe(true)
    expect(reads.length).toBe(5)
    expect(Math.max(...reads.map(({ bytes }) => bytes))).toBeLessThanOrEqual(1 << 20)
  })

  test('reads a member that is larger than the window, in a read of its own', async () => {
    const members = [...bulky(2, 10), ...bulky(1, 3_000_000).map((m) => ({ ...m, name: 'large' }))]
    const { reader, reads } = openBytes(writeRawZip([...members, ...bulky(1, 20)]), {
      limits: { maxMemberBytes: 3_000_000 },
    })
    const read = await readAll(reader)
    expect(read.map(({ content }) => content?.length)).toEqual([10, 10, 3_000_000, 20])
    expect(reads.length).toBe(3)
  })

  test('bridges gaps up to the limit and never reads past a wider one', async () => {
    const zip = writeRawZip(bulky(10, 10_000))
    const far = openBytes(zip, { gap: 9_999 })
    await readAll(far.reader, only('m-2', 'm-4'))
    expect(far.reads.map(({ bytes }) => bytes)).toEqual([10_033, 10_033])
    expect(far.reads.map(({ from }) => from)).toEqual([20_066, 40_132])
    const near = openBytes(zip, { gap: 10_033 })
    const read = await readAll(near.reader, only('m-2', 'm-4'))
    expect(near.reads).toEqual([{ from: 20_066, bytes: 30_099 }])
    expect(read.map(({ content }) => content?.toString('latin1', 0, 1))).toEqual(['2', '4'])
  })

  test('reads nothing when no member is wanted', async () => {
    const { reader, reads } = openBytes(writeRawZip(bulky(10, 100)))
    expect(await readAll(reader, () => false)).toEqual([])
    expect(reads).toEqual([])
  })

  test('does not read unused bytes between two members', async () => {
    const [first, second] = bulky(2, 100) as [RawMember, RawMember]
    const waste = { ...first, data: Buffer.concat([first.data, Buffer.alloc(5_000_000)]) }
    const { reader, reads } = openBytes(writeRawZip([waste, second]))
    const read = await readAll(reader)
    expect(read.map(({ content, refused }) => refused ?? content?.length)).toEqual([100, 100])
    expect(reads.reduce((sum, { bytes }) => sum + bytes, 0)).toBeLessThan(200_000)
  })

  test('keeps every member within its own region, whatever its local header says', async () => {
    const [first, second] = bulky(2, 100) as [RawMember, RawMember]
    const zip = writeRawZip([first, { ...second, crc32: first.crc32, data: first.data }])
    zip.writeUInt16LE(133, 28) // the first header's extra field: its data would be the second member's
    const [read] = await readAll(openBytes(zip).reader)
    expect(read?.refused).toBe('its data run over the next member')
  })

  test('passes views that the next read overwrites', async () => {
    const { reader } = openBytes(writeRawZip(bulky(30, 100_000)))
    const views: Buffer[] = []
    await reader.readMembers(
      () => true,
      (_entry, member) => {
        if ('refused' in member) throw new Error(member.refused)
        views.push(member.content)
      },
    )
    expect(views[0]?.toString('latin1', 0, 2)).not.toBe('00')
  })

  test('stops at an exception of the source or the visitor', async () => {
    const { reader } = openBytes(writeRawZip(bulky(3, 100)))
    let seen = 0
    const stop = reader.readMembers(
      () => true,
      () => {
        seen++
        throw new Error('enough')
      },
    )
    await expect(stop).rejects.toThrow('enough')
    expect(seen).toBe(1)
    const broken = { size: 1, read: () => Promise.reject(new Error('no route')) }
    const lost = createArchiveReader(broken, reader.directory, LIMITS, 0)
    await expect(readAll(lost)).rejects.toThrow('no route')
  })
})

describe('an archive on disk', () => {
  const onDisk = (bytes: Buffer): string => {
    const path = join(scratch(), 'archive.zip')
    writeFileSync(path, bytes)
    return path
  }

  longTest('with a large directory is read page by page, in any order', async () => {
    const name = (i: number): string => `${'n'.repeat(i % 300)}-${i}`
    const members = Array.from({ length: 9_000 }, (_, i): NamedContent => [name(i), String(i)])
    const bytes = pack(members)
    const archive = await openArchive(onDisk(bytes), LIMITS)
    expect(archive.directory.count).toBe(members.length)
    const order = members.map((_, i) => (i * 4_001) % members.length)
    const read: [string, string][] = []
    await archive.readNumbered([...order, ...order.toSorted((a, b) => a - b)], (entry, member) => {
      read.push([entry.name, 'refused' in member ? member.refused : String(member.content)])
      return undefined
    })
    const expected = order.map((i) => [name(i), String(i)])
    expect(read).toEqual([...expected, ...members])
    await archive.close()
    const cut = onDisk(bytes.subarray(0, -1))
    await expect(openArchive(cut, LIMITS)).rejects.toThrow('no end-of-central-directory record')
  })

  test('written by adm-zip is read back', async () => {
    const zip = new AdmZip()
    const members: NamedContent[] = [
      ['a.json', '{"id":"a"}'],
      ['b.json', 'x'.repeat(100_000)],
    ]
    for (const [name, text] of members) zip.addFile(name, Buffer.from(text))
    const reader = await openArchive(onDisk(zip.toBuffer()), LIMITS)
    expect(contents(await readAll(reader))).toEqual(Object.fromEntries(members))
    await reader.close()
  })

  test('is refused with the code archive when it is empty, short or no zip at all', async () => {
    for (const bytes of [Buffer.alloc(0), Buffer.from('PK'), Buffer.alloc(100_000, 'no zip ')]) {
      const refusal: unknown = await openArchive(onDisk(bytes), LIMITS).catch((e: unknown) => e)
      expect(refusal).toBeInstanceOf(MirrorError)
      expect(refusal).toMatchObject({ code: 'archive' })
    }
  })

  test('frees its directory when it is closed', async () => {
    const reader = await openArchive(onDisk(writeRawZip(bulky(3000, 1))), LIMITS)
    const { directory } = reader
    expect(directory.entry(2999).name).toBe('m-2999')
    await reader.close()
    expect(() => directory.entry(0)).toThrow(RangeError)
    await expect(readAll(reader)).rejects.toThrow('the archive was closed')
  })

  test('that shrinks while it is read ends in an error, not in other bytes', async () => {
    const path = onDisk(writeRawZip(bulky(5, 1000)))
    const reader = await openArchive(path, LIMITS)
    writeFileSync(path, Buffer.alloc(1500))
    await expect(readAll(reader)).rejects.toMatchObject({ code: 'archive' })
    await reader.close()
  })

  testOfReal('with real records is read as adm-zip reads it', async () => {
    const reader = await openArchive(REAL, { maxMemberBytes: 32_000_000 })
    const witness = new AdmZip(readFileSync(REAL))
    let checked = 0
    await reader.readMembers(
      () => true,
      (entry, member) => {
        if ('refused' in member) throw new Error(`${entry.name}: ${member.refused}`)
        const theirs = witness.getEntry(entry.name)
        expect(theirs?.header.crc).toBe(entry.crc32)
        if (checked++ % 100 === 0) expect(theirs?.getData().equals(member.content)).toBe(true)
      },
    )
    await reader.close()
    expect(checked).toBe(witness.getEntryCount())
  })
})

describe('the limits of the archive reader', () => {
  test('refuse a member over the cap unread, and no other', async () => {
    const { reader, reads } = openBytes(
      writeRawZip([soundMember('small', 'fine'), soundMember('large', Buffer.alloc(2_000_000))]),
    )
    const [small, large] = await readAll(reader)
    expect(small?.content?.toString()).toBe('fine')
    expect(large?.refused).toBe('2000000 bytes are over the cap of 1000000')
    expect(reads.length).toBe(1)
  })

  test('leave a region unread that no allowed member can need', async () => {
    const { reader, reads } = openBytes(writeRawZip(bulky(1, 5_000_000)))
    const [read] = await readAll(reader)
    expect(read?.refused).toContain('over the cap')
    expect(reads).toEqual([])
  })

  test('refuse a central directory that is too large before it is read', () => {
    const zip = pack([['a', '1']])
    const limits = { ...LIMITS, maxDirectoryBytes: 46 }
    expect(() => openBytes(zip, { limits })).toThrow('47 bytes is over the cap of 46')
    expect(openBytes(zip, { limits: { ...limits, maxDirectoryBytes: 47 } }).reader.size).toBe(zip.length)
  })

  test('refuse an end record with more entries than fit without allocating memory for them', () => {
    const zip = pack([['a', '1']])
    zip.writeUInt16LE(60_000, zip.length - 12)
    expect(archiveRefusal(zip)).toContain('cannot contain 60000 entries')
  })
})
