import { spawnSync } from 'node:child_process'
import { existsSync, readFileSync, readdirSync, writeFileSync } from 'node:fs'
import { join } from 'node:path'
import { describe, expect } from 'vitest'
import { layOut, localHeader, storedHeader } from '../../../../src/features/bundles/format/layout.ts'
import { openBundle, openBundleSource } from '../../../../src/features/bundles/import/open.ts'
import { createBundleWriter } from '../../../../src/features/bundles/export/writer.ts'
import { locateDirectory } from '../../../../src/archive/zip/directory.ts'
import type { HeaderMember } from '../../../../src/archive/zip/headers.ts'
import type { ByteSource } from '../../../../src/archive/zip/reader.ts'
import { SMALL, head, keyPair, refusal, scratch, trust, writeBundle } from '../fixtures.ts'
import { longTest, test } from '../../../support/tables.ts'

const has = (command: string, ...args: string[]): boolean => spawnSync(command, args, { stdio: 'ignore' }).status === 0

describe('a written bundle', () => {
  test('returns what was put in, whole, in pieces and in place', async () => {
    const folder = scratch()
    const key = keyPair(folder, 'key')
    const path = join(folder, 'b.zip')
    const large = Buffer.alloc(3_500_000, 'large ')
    await writeBundle(path, [key], [...SMALL, [`blobs/${'1f'.repeat(32)}.gz`, large]])
    const bundle = await openBundle([path], trust([key]))
    expect(bundle.key).toBe(key.id)
    expect(bundle.manifest.keys).toEqual([key.id])
    const seen: number[] = []
    await bundle.verify((done) => seen.push(done))
    expect(seen).toEqual([...seen].sort((a, b) => a - b))
    expect(seen.at(-1)).toBe(bundle.bytes)
    for (const [name, content] of SMALL) expect(await bundle.read(name)).toEqual(content)
    const pieces: Buffer[] = []
    for await (const chunk of bundle.stream(`blobs/${'1f'.repeat(32)}.gz`)) pieces.push(Buffer.from(chunk))
    expect(Buffer.concat(pieces).equals(large)).toBe(true)
    const archive = bundle.source('osv/all.zip')
    expect(archive.size).toBe(21)
    expect(String(await archive.read(3, 7))).toBe('archive')
    await expect(archive.read(20, 2)).rejects.toThrow('ends before')
    await expect(bundle.read('osv/changed.zip')).rejects.toThrow('does not contain')
    expect(() => bundle.stream('rows/osv/osv-record-00001.jsonl')).toThrow('not stored')
    await bundle.close()
  })

  test('has the same bytes for the same content', async () => {
    const folder = scratch()
    const key = keyPair(folder, 'key')
    const one = join(folder, '1.zip')
    const two = join(folder, '2.zip')
    await writeBundle(one, [key])
    await writeBundle(two, [key])
    expect(readFileSync(one).equals(readFileSync(two))).toBe(true)
  })

  test('replaces no file unless forced, and leaves none behind when it is cancelled', async () => {
    const folder = scratch()
    const path = join(folder, 'b.zip')
    writeFileSync(path, 'precious')
    expect(() => createBundleWriter(path, { split: null, force: false })).toThrow('--force')
    const writer = createBundleWriter(path, { split: null, force: true })
    await writer.addDeflated('rows/osv/osv-record-00001.jsonl', Buffer.from('x'))
    await expect(writer.addStored('osv/all.zip', 4, [Buffer.from('abc')])).rejects.toThrow('has 3 bytes, not 4')
    await writer.discard()
    expect(readdirSync(folder)).toEqual(['b.zip'])
    expect(readFileSync(path, 'utf8')).toBe('precious')
  })

  test('gets its name only after it was verified', async () => {
    const folder = scratch()
    const path = join(folder, 'b.zip')
    const writer = createBundleWriter(path, { split: null, force: false })
    const { drafts } = await writer.complete(head(), [])
    expect([existsSync(path), ...drafts.map((draft) => existsSync(draft))]).toEqual([false, true])
    await writer.discard()
    expect(readdirSync(folder)).toEqual([])
  })

  test('in a missing folder is an error that says so', async () => {
    const writer = createBundleWriter('/nonexistent/b.zip', { split: null, force: false })
    await expect(writer.complete(head(), [])).rejects.toMatchObject({ code: 'storage' })
  })
})

describe('the ZIP of a bundle', () => {
  const folder = scratch()
  const key = keyPair(folder, 'key')

  test.skipIf(!has('unzip', '-v'))('is without fault for unzip', async () => {
    const path = join(folder, 'unzip.zip')
    await writeBundle(path, [key])
    const { status, stdout } = spawnSync('unzip', ['-t', path], { encoding: 'utf8' })
    expect(stdout).toContain('No errors detected')
    expect(status).toBe(0)
  })

  test.skipIf(!has('7z', 'i'))('is without fault for 7z', async () => {
    const path = join(folder, '7z.zip')
    await writeBundle(path, [key])
    const { status, stdout } = spawnSync('7z', ['t', path], { encoding: 'utf8' })
    expect(stdout).toContain('Everything is Ok')
    expect(status).toBe(0)
  })

  test.skipIf(!has('python3', '-c', 'import zipfile'))("is without fault for Python's zipfile", async () => {
    const path = join(folder, 'python.zip')
    await writeBundle(path, [key])
    const script = 'import sys, zipfile; assert zipfile.ZipFile(sys.argv[1]).testzip() is None'
    expect(spawnSync('python3', ['-c', script, path], { encoding: 'utf8' }).stderr).toBe('')
  })

  longTest('can have more than 65,535 members', () => {
    const members = Array.from({ length: 65_536 }, (_, i) => {
      return { name: `${i}`, method: 0, crc32: 0, size: 0, packed: 0 }
    })
    const layout = layOut(members)
    const tail = Buffer.concat([...layout.tail()])
    const { count, offset } = locateDirectory(tail, layout.size)
    expect({ count, offset }).toEqual({ count: 65_536, offset: layout.directoryAt })
  })

  test('can have members and offsets beyond 4 GiB', async () => {
    const size = 5 * 2 ** 30
    const member = { name: 'osv/all.zip', method: 'store', size, crc32: '00000000' } as const
    const after = { ...member, name: `blobs/${'a'.repeat(64)}.gz`, size: 1 }
    const sha256 = '0'.repeat(64)
    const members = [member, after].map((one) => ({ ...one, sha256 }))
    const manifest = Buffer.from(JSON.stringify({ ...head(), keys: [], members }))
    const stored = ({ name, size: bytes }: typeof after): HeaderMember => {
      return { name, method: 0, crc32: 0, size: bytes, packed: bytes }
    }
    const headers = [...[member, after].map(stored), storedHeader('manifest.json', manifest)]
    const source = sparse(headers, manifest)
    const { layout } = await openBundleSource(source, null)
    expect(layout.placed.map(({ fields }) => fields.localBytes - 30 - fields.nameLength)).toEqual([20, 0, 0])
    expect(layout.placed[1]?.dataAt).toBeGreaterThan(size)
    expect(await refusal(['/nonexistent'], trust([]))).toContain('there is no /nonexistent')
  })
})

/** A zip as a source of bytes that has only its headers, and zeros between. */
function sparse(headers: readonly HeaderMember[], last: Buffer): ByteSource {
  const layout = layOut(headers)
  const pieces = layout.placed.map((placed) => ({
    at: placed.fields.offset,
    bytes: localHeader(placed),
  }))
  const manifestAt = layout.placed.at(-1)?.dataAt ?? 0
  pieces.push({ at: manifestAt, bytes: last })
  pieces.push({ at: layout.directoryAt, bytes: Buffer.concat([...layout.tail()]) })
  return {
    size: layout.size,
    read(position, length) {
      const outcome = Buffer.alloc(length)
      for (const { at, bytes } of pieces) {
        const from = Math.max(position, at)
        const to = Math.min(position + length, at + bytes.length)
        if (from < to) bytes.copy(outcome, from - position, from - at, to - at)
      }
      return Promise.resolve(outcome)
    },
  }
}
