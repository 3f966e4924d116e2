import { mkdtempSync, rmSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { gunzipSync, gzipSync } from 'node:zlib'
import { expect, onTestFinished, test } from 'vitest'
import { freeWhole } from '../../../src/base/free-bytes.ts'
import { sha256Hex } from '../../../src/base/digest.ts'
import { chunkContent, createChunkBuffer, createDocumentStoreWriter } from '../../../src/store/catalog/documents.ts'
import { openWriter } from '../../../src/store/database/open.ts'

function opened() {
  const dir = mkdtempSync(join(tmpdir(), 'patchmirror-'))
  const db = openWriter(dir)
  onTestFinished(() => {
    db.close()
    rmSync(dir, { recursive: true })
  })
  return { db, documents: createDocumentStoreWriter(db) }
}

test('only bytes that are all of their memory are freed', () => {
  const whole = Buffer.alloc(100_000, 'x')
  const part = Buffer.alloc(100_000, 'y').subarray(1)
  freeWhole(whole)
  freeWhole(part)
  expect(whole.length).toBe(0)
  expect(part.toString().slice(0, 3)).toBe('yyy')
})

test('a chunk buffer frees the bytes that it copied, and those of nobody else', () => {
  const buffer = createChunkBuffer(1 << 20)
  const memory = Buffer.alloc(60_000, 'c') // of which two pieces are views
  const pieces = [Buffer.alloc(30_000, 'a'), Buffer.alloc(40_000, 'b'), memory.subarray(0, 100), memory.subarray(100)]
  const expected = Buffer.concat(pieces)
  for (const piece of pieces) buffer.add(piece)
  expect(buffer.bytes().equals(expected)).toBe(true)
  expect(pieces.map(({ length }) => length)).toEqual([0, 0, 100, 59_900])
  buffer.drop(30_000)
  expect(buffer.bytes().equals(expected.subarray(30_000))).toBe(true)
  buffer.free()
  expect(memory.every((byte) => byte === 0x63)).toBe(true)
})

test.each([0, 10, 70_000, 2_500_000])('a document of %i bytes is stored once, with its first type', async (size) => {
  const { db, documents } = opened()
  const content = Buffer.alloc(size, 'abc')
  const digest = sha256Hex(content)
  for (const type of ['text/first', 'text/second']) {
    const sink = documents.openDocument()
    for (let at = 0; at < Math.max(1, size); at += 65_536) {
      if (!sink.write(Buffer.from(content.subarray(at, at + 65_536)))) continue
      await sink.pack()
      sink.flush()
    }
    await sink.pack(true)
    expect(sink.end(type, 1)).toEqual({ digest, size, type: 'text/first' })
  }
  const chunks = Math.max(1, Math.ceil(size / 1_048_576))
  const read = Array.from({ length: chunks }, (_, at) => documents.readChunk(digest, at))
  expect(Buffer.concat(read.map((one) => chunkContent(one ?? Buffer.alloc(0)))).equals(content)).toBe(true)
  expect(documents.readDocument(digest)).toMatchObject({ size, type: 'text/first' })
  expect(db.prepare('SELECT count(*) AS left FROM temp.incoming_chunk').get()).toEqual({
    left: 0,
  })
})

test.each([17, 70_000, 2_500_000])(
  'chunks without their document, also of other bytes, are replaced by those of %i bytes',
  async (size) => {
    const { db, documents } = opened()
    const content = Buffer.alloc(size, 'abc')
    const digest = sha256Hex(content)
    const left = db.prepare('INSERT INTO catalog_chunk VALUES (?, ?, ?)')
    for (const number of [0, 1, 5]) left.run(digest, number, gzipSync('something else'))
    const sink = documents.openDocument()
    for (let at = 0; at < size; at += 65_536) {
      if (!sink.write(Buffer.from(content.subarray(at, at + 65_536)))) continue
      await sink.pack()
      sink.flush()
    }
    await sink.pack(true)
    expect(sink.end('text/plain', 1)).toEqual({ digest, size, type: 'text/plain' })
    const chunks = db.prepare<[], Buffer>('SELECT bytes FROM catalog_chunk ORDER BY number').pluck().all()
    expect(gunzipSync(Buffer.concat(chunks)).equals(content)).toBe(true)
    expect(documents.readDocument(digest)?.stored).toBe(Buffer.concat(chunks).length)
  },
)
