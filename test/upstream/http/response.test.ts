import { gzipSync } from 'node:zlib'
import { expect, test } from 'vitest'
import { type Meta, decodeBody, metaOf } from '../../../src/upstream/http/response.ts'

const META: Meta = {
  status: 200,
  etag: null,
  lastModified: null,
  date: 0,
  length: null,
  contentRange: null,
  contentEncoding: 'gzip',
  contentType: 'application/json',
  retryAfter: null,
  location: null,
  link: null,
  total: null,
  headers: {},
}
const CONTENT = Buffer.from(JSON.stringify(Array.from({ length: 20_000 }, (_, at) => at * 7919)))
const MOST = 1_000_000

function decoded(raw: Buffer, maxBytes = MOST): Buffer {
  return decodeBody(raw, META, maxBytes, '/v1/me')
}

test('a gzip body is inflated into no more memory than its content and a few bytes', () => {
  const body = decoded(gzipSync(CONTENT))
  expect(body.equals(CONTENT)).toBe(true)
  expect(body.buffer.byteLength).toBeLessThan(CONTENT.length + 100)
})

test.each<[string, Buffer, Buffer]>([
  ['no content', gzipSync(''), Buffer.alloc(0)],
  [
    'several members, of which the last is short',
    Buffer.concat([gzipSync(CONTENT), gzipSync('[]')]),
    Buffer.concat([CONTENT, Buffer.from('[]')]),
  ],
  [
    'zeros behind the member, which look like a small size',
    Buffer.concat([gzipSync(CONTENT), Buffer.alloc(4)]),
    CONTENT,
  ],
])('a gzip body with %s is inflated as a whole', (_, raw, content) => {
  expect(decoded(raw).equals(content)).toBe(true)
})

test('a gzip body is refused when its content is over the cap, whatever its trailer says', () => {
  const raw = Buffer.concat([gzipSync(CONTENT), gzipSync('')])
  expect(() => decoded(raw, CONTENT.length - 1)).toThrow(/inflates to more than \d+ bytes/)
  expect(decoded(raw, CONTENT.length).equals(CONTENT)).toBe(true)
})

test('a gzip body whose trailer does not fit its content is refused as damaged', () => {
  const raw = gzipSync(CONTENT)
  raw.writeUInt32LE(CONTENT.length + 1, raw.length - 4)
  expect(() => decoded(raw)).toThrow(/the gzip body is damaged/)
})

test.each([
  ['its own date', {}, 0],
  ['a date that a cache renewed', { age: '3600' }, 3_600_000],
  ['no date', { date: undefined, age: '60' }, 60_000],
  ['an age that is no number', { age: 'old' }, 0],
])('an answer with %s is as old as its time in caches', (_, headers, age) => {
  const now = Date.parse('2026-01-02T03:04:05Z')
  const given = { date: new Date(now).toUTCString(), ...headers }
  const { date } = metaOf({ status: 200, headers: given, body: undefined as never }, () => now)
  expect(now - date).toBe(age)
})
