import { mkdtempSync, openSync, closeSync, rmSync, writeFileSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { Readable } from 'node:stream'
import { expect, test } from 'vitest'
import { digestOfChunks, digestOfOpenFile, sha256Hex, sha256Of } from '../../src/base/digest.ts'
import { formatHttpDate, parseDate, toIso, toIsoOrNull } from '../../src/base/time.ts'

/** The SHA-256 of `abc` (FIPS 180-2, appendix B.1). */
const ABC = 'ba7816bf8f01cfea414140de5dae2223b00361a396177a9cb410ff61f20015ad'

test('the digests of a text, its bytes, its chunks and an open file are equal', async () => {
  expect(sha256Hex('abc')).toBe(ABC)
  expect(sha256Of(Buffer.from('abc')).toString('hex')).toBe(ABC)
  expect(await digestOfChunks(Readable.from([Buffer.from('a'), Buffer.from('bc')]))).toBe(ABC)
  const folder = mkdtempSync(join(tmpdir(), 'patchmirror-'))
  try {
    writeFileSync(join(folder, 'file'), 'abc')
    const fd = openSync(join(folder, 'file'), 'r')
    const pieces: string[] = []
    expect(digestOfOpenFile(fd, (piece) => pieces.push(piece.toString()))).toBe(ABC)
    expect(pieces).toEqual(['abc'])
    closeSync(fd)
  } finally {
    rmSync(folder, { recursive: true })
  }
})

test('a missing or invalid time is parsed as null', () => {
  expect(toIsoOrNull(0)).toBe(toIso(0))
  expect([toIsoOrNull(null), toIsoOrNull(undefined), parseDate(null), parseDate('x')]).toEqual([null, null, null, null])
  expect(parseDate(formatHttpDate(1_000))).toBe(1_000_000)
})
