import { spawnSync } from 'node:child_process'
import { closeSync, openSync, writeFileSync, writeSync } from 'node:fs'
import { join } from 'node:path'
import { crc32 } from 'node:zlib'
import AdmZip from 'adm-zip'
import fc from 'fast-check'
import { describe, expect } from 'vitest'
import { wholeDirectory } from '../../../src/archive/zip/directory-bytes.ts'
import { END_SPAN, locateDirectory, parseDirectory } from '../../../src/archive/zip/directory.ts'
import { deflate } from '../../../src/base/gzip/member.ts'
import { openArchive } from '../../../src/archive/zip/reader.ts'
import { createZipWriter } from '../../../src/archive/zip/writer.ts'
import {
  type NamedContent,
  LIMITS,
  archiveRefusal,
  contents,
  openBytes,
  pack,
  readAll,
  scratch,
  zipMember,
} from './archives.ts'
import { bothTest, LONG, longTest, test } from '../../support/tables.ts'

const SAMPLE: NamedContent[] = [
  ['ROOT-1.json', '{"id":"ROOT-1"}'],
  ['with space .json', 'x'.repeat(5000)],
  ['naïve-日本-🐙.json', 'ünïcödé'],
  ['nested/folder/deep.json', ''],
  ['empty.json', ''],
  ['binary.bin', Buffer.from(Array.from({ length: 1000 }, (_, i) => (i * 7919) & 255))],
]

const has = (command: string, ...args: string[]): boolean => spawnSync(command, args, { stdio: 'ignore' }).status === 0
const unzipIsThere = has('unzip', '-v')
const pythonIsThere = has('python3', '-c', 'import zipfile')

/** Any safe relative name: what the reader must take. */
const safeName = fc
  .array(fc.string({ unit: 'grapheme', minLength: 1, maxLength: 12 }), {
    minLength: 1,
    maxLength: 3,
  })
  .map((parts) => parts.join('/'))
  .filter(
    (name) =>
      name.isWellFormed() &&
      !/[\0\\\ufffd]/.test(name) &&
      !/^[A-Za-z]:\//.test(name) &&
      !name.startsWith('/') &&
      !name.split('/').includes('..'),
  )
const content = fc.oneof(
  fc.uint8Array({ maxLength: 300 }).map((bytes) => Buffer.from(bytes)),
  fc.nat(20_000).map((size) => Buffer.alloc(size, 'abc')),
)

describe('the zip writer', () => {
  test('makes archives that adm-zip reads member for member, in order', () => {
    const entries = new AdmZip(pack(SAMPLE)).getEntries()
    expect(entries.map(({ entryName }) => entryName)).toEqual(SAMPLE.map(([name]) => name))
    for (const [i, [name, text]] of SAMPLE.entries()) {
      expect(entries[i]?.getData().equals(Buffer.from(text)), name).toBe(true)
    }
  })

  test.skipIf(!unzipIsThere)('makes archives that unzip tests without an error', () => {
    const path = join(scratch(), 'sample.zip')
    writeFileSync(path, pack(SAMPLE))
    const { status, stdout } = spawnSync('unzip', ['-t', path], { encoding: 'utf8' })
    expect(stdout).toContain('No errors detected')
    expect(status).toBe(0)
    const one = spawnSync('unzip', ['-p', path, 'ROOT-1.json'], { encoding: 'utf8' })
    expect(one.stdout).toBe('{"id":"ROOT-1"}')
  })

  test.skipIf(!pythonIsThere)('makes archives whose names and contents Python reads', () => {
    const path = join(scratch(), 'sample.zip')
    writeFileSync(path, pack(SAMPLE))
    const script = [
      'import json, sys, zipfile',
      'z = zipfile.ZipFile(sys.argv[1])',
      'assert z.testzip() is None',
      'print(json.dumps([[i.filename, z.read(i).hex(), i.external_attr >> 16] for i in z.infolist()]))',
    ].join('\n')
    const { stdout, stderr } = spawnSync('python3', ['-c', script, path], { encoding: 'utf8' })
    expect(stderr).toBe('')
    const expected = SAMPLE.map(([name, text]) => [name, Buffer.from(text).toString('hex'), 0o100644])
    expect(JSON.parse(stdout)).toEqual(expected)
  })

  test('gives the same bytes for the same members, and reports their size and count', () => {
    const chunks: Buffer[] = []
    const writer = createZipWriter((chunk) => chunks.push(Buffer.from(chunk)))
    for (const member of SAMPLE) writer.add(zipMember(member))
    const told = writer.finish()
    const made = Buffer.concat(chunks)
    expect(told).toEqual({ size: made.length, members: SAMPLE.length })
    expect(pack(SAMPLE).equals(made)).toBe(true)
    expect(pack(SAMPLE.toReversed()).equals(made)).toBe(false)
  })

  test('gives the same bytes with small chunks, also where a header is larger than one', () => {
    const members = ['a', 'b'.repeat(300), 'c'].map((name) => {
      const content = Buffer.from(name.repeat(7))
      return { name, crc32: crc32(content), size: content.length, deflated: deflate(content) }
    })
    const written = (bounds: { chunk?: number }): Buffer => {
      const chunks: Buffer[] = []
      const zip = createZipWriter((bytes) => chunks.push(Buffer.from(bytes)), undefined, bounds)
      for (const member of members) zip.add(member)
      zip.finish()
      return Buffer.concat(chunks)
    }
    expect(written({ chunk: 100 }).equals(written({}))).toBe(true)
  })

  test('gives bytes that do not depend on time or place: dates are 1980, without extra fields', () => {
    const before = process.env['TZ']
    try {
      process.env['TZ'] = 'Pacific/Kiritimati'
      const there = pack(SAMPLE)
      process.env['TZ'] = 'America/Anchorage'
      expect(pack(SAMPLE).equals(there)).toBe(true)
    } finally {
      if (before === undefined) delete process.env['TZ']
      else process.env['TZ'] = before
    }
    const zip = pack([['a.json', '1']])
    expect([zip.readUInt16LE(10), zip.readUInt16LE(12), zip.readUInt16LE(28)]).toEqual([0, 0x21, 0])
  })

  test('sets the UTF-8 flag only where a name needs it', () => {
    const flags = (name: string): number => pack([[name, '']]).readUInt16LE(6)
    expect([flags('plain.json'), flags('ünï.json')]).toEqual([0, 0x0800])
  })

  test('writes an archive without members that all readers accept', () => {
    const none = pack([])
    expect(none.length).toBe(22)
    expect(openBytes(none).reader.directory.count).toBe(0)
    expect(new AdmZip(none).getEntryCount()).toBe(0)
  })

  test('refuses a name that is too long for a header, and writes nothing', () => {
    const chunks: Uint8Array[] = []
    const writer = createZipWriter((chunk) => chunks.push(chunk))
    expect(() => writer.add(zipMember(['n'.repeat(65_536), '']))).toThrow(RangeError)
    writer.add(zipMember(['n'.repeat(65_535), 'x']))
    expect(writer.finish().members).toBe(1)
  })

  longTest('copies streams longer than a chunk as they are', async () => {
    const noise = Buffer.from(Array.from({ length: 3_000_001 }, (_, i) => Math.imul(i, 2654435761) >>> 24))
    const zip = pack([
      ['large', noise],
      ['small', 'after it'],
    ])
    const { reader } = openBytes(zip, { limits: { maxMemberBytes: 4_000_000 } })
    const [large, small] = await readAll(reader)
    expect(large?.content?.equals(noise)).toBe(true)
    expect(small?.content?.toString()).toBe('after it')
  })
})

describe('an archive that is written and read back', () => {
  bothTest('has the same names, contents and order', async () => {
    await fc.assert(
      fc.asyncProperty(fc.array(fc.tuple(safeName, content), { maxLength: 12 }), async (members) => {
        const outcomes = await readAll(openBytes(pack(members)).reader)
        expect(outcomes.map(({ entry }) => entry.name)).toEqual(members.map(([name]) => name))
        expect(outcomes.map(({ refused }) => refused)).toEqual(members.map(() => null))
        for (const [i, [, bytes]] of members.entries()) {
          expect(outcomes[i]?.content?.equals(bytes)).toBe(true)
        }
      }),
      { numRuns: LONG ? 150 : 8 },
    )
  })

  bothTest('agrees with adm-zip in both directions', async () => {
    await fc.assert(
      fc.asyncProperty(
        fc.uniqueArray(fc.tuple(fc.stringMatching(/^[A-Za-z0-9 _-]{1,20}$/), content), {
          maxLength: 8,
          selector: ([name]) => name,
        }),
        async (members) => {
          const theirs = new AdmZip()
          for (const [name, bytes] of members) theirs.addFile(`${name}.json`, bytes)
          const read = contents(await readAll(openBytes(theirs.toBuffer()).reader))
          const ours = new AdmZip(pack(members.map(([name, bytes]) => [`${name}.json`, bytes])))
          for (const [name, bytes] of members) {
            expect(read[`${name}.json`]).toBe(bytes.toString('latin1'))
            expect(ours.readFile(`${name}.json`)?.equals(bytes)).toBe(true)
          }
        },
      ),
      { numRuns: LONG ? 60 : 5 },
    )
  })
})

const FAR_STREAM = 1 << 26
const FAR_OFFSETS = Array.from(
  { length: 66 },
  (_, i) => i * (FAR_STREAM + 30 + 'part-00.json'.length) - Math.min(i, 10),
)

let far: { tail: Buffer; size: number } | null = null

/** The end of an archive of more than 4 GiB: one stream many times over, and nothing but the last chunks is kept. */
function farArchive(): { tail: Buffer; size: number } {
  if (far !== null) return far
  const deflated = Buffer.alloc(FAR_STREAM, 0x55)
  let kept: Buffer[] = []
  let bytes = 0
  const writer = createZipWriter((chunk) => {
    bytes += chunk.length
    if (bytes > 65 * FAR_STREAM) kept = [...kept, Buffer.from(chunk)].slice(-2)
  })
  for (const i of FAR_OFFSETS.keys()) {
    writer.add({ name: `part-${i}.json`, crc32: i, size: FAR_STREAM, deflated })
  }
  const { size } = writer.finish()
  expect(size).toBe(bytes)
  expect(size).toBeGreaterThan(2 ** 32)
  far = { tail: Buffer.concat(kept).subarray(-END_SPAN), size }
  return far
}

describe('Zip64', () => {
  longTest('is used for seventy thousand members, and read back by us and by adm-zip', async () => {
    const member = zipMember(['', '{}'])
    const chunks: Buffer[] = []
    const writer = createZipWriter((chunk) => chunks.push(Buffer.from(chunk)))
    for (let i = 0; i < 70_000; i++) writer.add({ ...member, name: `ROOT-${i}.json` })
    expect(writer.finish().members).toBe(70_000)
    const path = join(scratch(), 'many.zip')
    writeFileSync(path, Buffer.concat(chunks))
    const reader = await openArchive(path, LIMITS)
    let sound = 0
    await reader.readMembers(
      () => true,
      (entry, read) => {
        if (!('refused' in read) && entry.name === `ROOT-${sound}.json`) sound++
      },
    )
    await reader.close()
    expect(sound).toBe(70_000)
    expect(new AdmZip(path).getEntryCount()).toBe(70_000)
  })

  longTest('is not used below 65,535 members and is at that count', () => {
    const signatureBeforeEnd = (count: number): string => {
      let tail = Buffer.alloc(0)
      const writer = createZipWriter((chunk) => (tail = Buffer.concat([tail, chunk]).subarray(-42)))
      const member = zipMember(['a', ''])
      for (let i = 0; i < count; i++) writer.add(member)
      writer.finish()
      return tail.toString('latin1', 0, 4)
    }
    expect(signatureBeforeEnd(65_534)).not.toBe('PK\x06\x07')
    expect(signatureBeforeEnd(65_535)).toBe('PK\x06\x07')
  })

  longTest('carries offsets beyond 4 GiB, and only for the members that need it', () => {
    const { tail, size } = farArchive()
    const location = locateDirectory(tail, size)
    const from = location.offset - (size - tail.length)
    const directory = parseDirectory(wholeDirectory(tail.subarray(from, from + location.size)), location)
    expect(directory.count).toBe(66)
    for (const [i, offset] of FAR_OFFSETS.entries()) {
      expect(directory.entry(i)).toMatchObject({ name: `part-${i}.json`, offset, crc32: i })
    }
    const extraOf = (i: number): number => {
      const at = tail.indexOf(`part-${i}.json`, from) - 46
      return tail.readUInt16LE(at + 30)
    }
    expect([extraOf(0), extraOf(60), extraOf(65)]).toEqual([0, 0, 12])
  })

  const longTestWithPython = LONG ? bothTest.skipIf(!pythonIsThere) : (): void => undefined
  longTestWithPython('carries offsets that Python reads as we do', () => {
    // A sparse file: the offsets count four gigabytes of nothing that the disk does not hold.
    const { tail, size } = farArchive()
    const path = join(scratch(), 'far.zip')
    const file = openSync(path, 'w')
    writeSync(file, tail, 0, tail.length, size - tail.length)
    closeSync(file)
    const script =
      'import json, sys, zipfile\nprint(json.dumps([i.header_offset for i in zipfile.ZipFile(sys.argv[1]).infolist()]))'
    const { stdout, stderr } = spawnSync('python3', ['-c', script, path], { encoding: 'utf8' })
    expect(stderr).toBe('')
    expect(JSON.parse(stdout)).toEqual(FAR_OFFSETS)
  })

  test('is refused when its end records point nowhere', () => {
    const chunks: Buffer[] = []
    const writer = createZipWriter((chunk) => chunks.push(Buffer.from(chunk)))
    const member = zipMember(['a', ''])
    for (let i = 0; i < 65_535; i++) writer.add(member)
    writer.finish()
    const zip = Buffer.concat(chunks)
    const locator = zip.length - 22 - 20
    const moved = Buffer.from(zip)
    moved.writeBigUInt64LE(0xffff_ffff_ffff_ffffn, locator + 8)
    expect(archiveRefusal(moved)).toContain('Zip64 end record')
    const hidden = Buffer.from(zip)
    hidden.writeUInt32LE(0, locator)
    expect(archiveRefusal(hidden)).toContain('requires Zip64')
  })
})

test('the sizes and the checksum in the headers are those of the deflated stream', () => {
  const text = Buffer.from('{"id":"ROOT-1"}')
  const zip = pack([['a', text]])
  const deflated = deflate(text)
  expect(zip.readUInt32LE(14)).toBe(crc32(text))
  expect(zip.subarray(31, 31 + deflated.length).equals(deflated)).toBe(true)
})
