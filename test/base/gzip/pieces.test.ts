import { randomBytes } from 'node:crypto'
import { gunzipSync, gzipSync } from 'node:zlib'
import { expect } from 'vitest'
import { longTest, test } from '../../support/tables.ts'
import { createPacker, inflatedPieces } from '../../../src/base/gzip/pieces.ts'
import { packContent } from '../../../src/store/database/gzip.ts'
import { deflate } from '../../../src/base/gzip/member.ts'

/** More than a block of the packer, as text that compresses. */
const CONTENT = Buffer.from(randomBytes(600_000).toString('hex'))

async function inflated(gzip: Buffer): Promise<{ content: Buffer; most: number }> {
  const pieces: Buffer[] = []
  for await (const piece of inflatedPieces(gzip)) pieces.push(Buffer.from(piece))
  return {
    content: Buffer.concat(pieces),
    most: Math.max(0, ...pieces.map(({ length }) => length)),
  }
}

test('gzip is inflated in pieces, in one member or several', async () => {
  for (const gzip of [gzipSync(CONTENT), Buffer.concat([gzipSync(CONTENT), gzipSync('')])]) {
    const { content, most } = await inflated(gzip)
    expect(content.equals(CONTENT)).toBe(true)
    expect(most).toBeLessThan(1_000_000)
  }
  expect(await inflated(gzipSync(''))).toEqual({ content: Buffer.alloc(0), most: 0 })
  await expect(inflated(gzipSync(CONTENT).subarray(0, -5))).rejects.toThrow('unexpected end')
})

longTest('content that arrives in pieces is packed as one member, whatever their sizes', () => {
  for (const size of [1000, CONTENT.length]) {
    const packer = createPacker()
    for (let at = 0; at < CONTENT.length; at += size) packer.push(CONTENT.subarray(at, at + size))
    const member = packer.end()
    expect(gunzipSync(member).equals(CONTENT)).toBe(true)
    expect(member.length).toBeLessThan(packContent(CONTENT, deflate).length * 1.01)
  }
})

test('small content is packed as it is in one piece', () => {
  for (const text of ['', 'a', 'a'.repeat(1 << 20)]) {
    const packer = createPacker()
    for (const part of [text.slice(0, 10), text.slice(10)]) packer.push(Buffer.from(part))
    expect(packer.end().equals(packContent(Buffer.from(text), deflate))).toBe(true)
  }
})
