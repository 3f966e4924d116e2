import { createHash } from 'node:crypto'
import { closeSync, openSync, readFileSync, writeFileSync, writeSync } from 'node:fs'
import { join } from 'node:path'
import { deflateRawSync } from 'node:zlib'
import { describe, expect } from 'vitest'
import { zipHeaderOf, layOut, localHeader, storedHeader } from '../../../../src/features/bundles/format/layout.ts'
import type { BundleMember } from '../../../../src/features/bundles/format/manifest.ts'
import { openBundle } from '../../../../src/features/bundles/import/open.ts'
import { bothTest, LONG, test } from '../../../support/tables.ts'
import { LATER, MADE, SMALL, head, keyPair, refusal, scratch, trust, writeBundle } from '../fixtures.ts'

describe('a bundle that was changed', () => {
  bothTest('is refused whichever of its bytes is flipped', async () => {
    const folder = scratch()
    const key = keyPair(folder, 'key')
    const other = keyPair(folder, 'other')
    const path = join(folder, 'b.zip')
    await writeBundle(path, [other, key])
    const whom = trust([key])
    expect(await refusal([path], whom)).toBeNull()
    const bytes = readFileSync(path)
    const file = openSync(path, 'r+')
    const taken: number[] = []
    for (const [at, byte] of bytes.entries()) {
      if (!LONG && at % 11 > 0) continue
      writeSync(file, Buffer.of(byte ^ (1 << (at % 8))), 0, 1, at)
      if ((await refusal([path], whom)) === null) taken.push(at)
      writeSync(file, Buffer.of(byte), 0, 1, at)
    }
    closeSync(file)
    expect(taken).toEqual([])
    expect(await refusal([path], whom)).toBeNull()
  })

  test('is refused when it is cut at the end of a member, or has extra bytes', async () => {
    const folder = scratch()
    const key = keyPair(folder, 'key')
    const path = join(folder, 'b.zip')
    await writeBundle(path, [key])
    const bytes = readFileSync(path)
    const cuts = [0, 1, bytes.length - 1, bytes.length - 22]
    for (const mark of ['PK\x03\x04', 'PK\x01\x02', 'PK\x05\x06'])
      for (let at = bytes.indexOf(mark, 0, 'latin1'); at >= 0;) {
        cuts.push(at)
        at = bytes.indexOf(mark, at + 1, 'latin1')
      }
    const other = join(folder, 'c.zip')
    for (const cut of cuts) {
      writeFileSync(other, bytes.subarray(0, cut))
      expect(await refusal([other], trust([key])), `cut at ${cut}`).toContain(other)
    }
    for (const more of [
      [bytes, Buffer.of(0)],
      [Buffer.of(0), bytes],
      [bytes, bytes],
      [bytes, Buffer.from('PK\x05\x06')],
    ]) {
      writeFileSync(other, Buffer.concat(more))
      expect(await refusal([other], trust([key]))).not.toBeNull()
    }
  })

  test('is refused with the manifest or the signature of another bundle', async () => {
    const folder = scratch()
    const key = keyPair(folder, 'key')
    const one = join(folder, '1.zip')
    const two = join(folder, '2.zip')
    await writeBundle(one, [key])
    await writeBundle(two, [key], SMALL, { sequence: 8 }) // as long as the other, to the byte
    const a = readFileSync(one)
    const b = readFileSync(two)
    expect(a.length).toBe(b.length)
    const manifestAt = a.indexOf('manifest.json') - 30
    const signatureAt = a.indexOf('.sig') + '.sig'.length
    const mixed = join(folder, 'mixed.zip')
    for (const [from, to, what] of [
      [0, signatureAt, 'signature'],
      [0, manifestAt, 'nothing'],
      [signatureAt, a.length, 'signature'],
    ] as const) {
      writeFileSync(mixed, b)
      const file = openSync(mixed, 'r+')
      writeSync(file, a, from, to - from, from)
      closeSync(file)
      const said = await refusal([mixed], trust([key]))
      if (what === 'nothing')
        expect(said).toBeNull() // the members are the same
      else expect(said).toContain('signature')
    }
  })
})

describe('a bundle signature', () => {
  const folder = scratch()
  const key = keyPair(folder, 'key')
  const other = keyPair(folder, 'other')
  const path = join(folder, 'b.zip')

  test('by a key that is not trusted is refused, with its id', async () => {
    await writeBundle(path, [other])
    const said = await refusal([path], trust([key]))
    expect(said).toContain(other.id)
    expect(said).toContain('bundle.trustedKeys')
    expect(await refusal([path], trust([]))).toContain('it is empty')
  })

  test('of one trusted key is enough, and that of a revoked key does not count', async () => {
    await writeBundle(path, [other, key])
    expect(await refusal([path], trust([key]))).toBeNull()
    expect(await refusal([path], trust([key, other], { revoked: new Set([other.id]) }))).toBeNull()
    const gone = new Set([key.id])
    expect(await refusal([path], trust([key], { revoked: gone }))).toContain('revoked')
    expect(await refusal([path], trust([key, other], { revoked: gone }))).toBeNull()
  })

  test('that is missing is refused unless unsigned bundles are allowed, and then no key is named', async () => {
    await writeBundle(path, [])
    expect(await refusal([path], trust([key]))).toContain('--allow-unsigned')
    const bundle = await openBundle([path], trust([key], { allowUnsigned: true }))
    expect(bundle.key).toBeNull()
    await bundle.verify()
    await bundle.close()
  })

  test('that is wrong is refused, also when unsigned bundles are allowed', async () => {
    await writeBundle(path, [key])
    const bytes = readFileSync(path)
    const at = bytes.indexOf('.sig') + 6
    bytes[at] = (bytes[at] ?? 0) ^ 1
    writeFileSync(path, bytes)
    const said = await refusal([path], trust([key], { allowUnsigned: true }))
    expect(said).toContain('signature')
  })
})

test('an expired bundle is refused from the time of its expiry by the local clock', async () => {
  const folder = scratch()
  const key = keyPair(folder, 'key')
  const path = join(folder, 'b.zip')
  await writeBundle(path, [key], SMALL, { expiresAt: new Date(LATER).toISOString() })
  expect(await refusal([path], trust([key], { now: () => LATER - 1 }))).toBeNull()
  expect(await refusal([path], trust([key], { now: () => LATER }))).toContain('expired at')
  expect(await refusal([path], trust([key], { now: null }))).toBeNull()
  await writeBundle(path, [key], SMALL, { expiresAt: null })
  expect(await refusal([path], trust([key], { now: () => MADE * 2 }))).toBeNull()
})

describe('a bundle with a malformed member', () => {
  const folder = scratch()
  const key = keyPair(folder, 'key')
  const path = join(folder, 'b.zip')
  const content = Buffer.from('x')

  test.each([
    ['../evil', 'a name that a member'],
    ['osv/../../evil', 'a name that a member'],
    ['/etc/passwd', 'a name that a member'],
    ['osv\\all.zip', 'a name that a member'],
    ['osv/all.zip ', 'a name that a member'],
    ['readme.txt', 'a name that a member'],
    ['manifest.json', 'a name that a member'],
    [`signatures/${'0'.repeat(16)}.sig`, 'a name that a member'],
    ['rows/secret/key-00001.jsonl', 'no source of the bundle'],
    ['rows/feeds/document-00001.jsonl', 'no source of the bundle'],
  ])('is refused although it is signed: %s', async (name, reason) => {
    await writeBundle(path, [key], [[name, content]])
    expect(await refusal([path], trust([key]))).toContain(reason)
  })

  test('is refused when a name occurs twice', async () => {
    await writeBundle(path, [key], [...SMALL, ...SMALL.slice(0, 1)])
    expect(await refusal([path], trust([key]))).toContain('twice')
  })

  test('is refused when a pack inflates beyond its declared size', async () => {
    // Unsigned, as only then somebody could have written this; all headers are made to fit.
    const packed = deflateRawSync(Buffer.alloc(20_000_000))
    rewriteUnsigned(path, 'rows/osv/osv-record-00001.jsonl', packed, 1000)
    const whom = trust([], { allowUnsigned: true })
    expect(await refusal([path], whom)).toContain('inflates to more than its 1000 bytes')
  })
})

/** Writes an unsigned bundle whose only pack claims another size than it has. */
function rewriteUnsigned(path: string, name: string, packed: Buffer, size: number): void {
  const sha256 = createHash('sha256').update(packed).digest('hex')
  const member: BundleMember = {
    name,
    method: 'deflate' as const,
    size,
    crc32: '00000000',
    sha256,
    packed: packed.length,
    packedSha256: sha256,
  }
  const manifest = Buffer.from(JSON.stringify({ ...head(), keys: [], members: [member] }))
  const layout = layOut([zipHeaderOf(member), storedHeader('manifest.json', manifest)])
  const [first, second] = layout.placed
  if (first === undefined || second === undefined) throw new Error('two members')
  const pieces = [localHeader(first), packed, localHeader(second), manifest, ...layout.tail()]
  writeFileSync(path, Buffer.concat(pieces))
}
