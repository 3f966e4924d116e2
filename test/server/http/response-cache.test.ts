import fc from 'fast-check'
import { expect, test } from 'vitest'
import { type JsonResponse, createAnswer } from '../../../src/server/http/response.ts'
import { createAnswerCache } from '../../../src/server/http/response-cache.ts'

const answer = (bytes: number, coding: 'gzip' | 'identity' = 'gzip'): JsonResponse =>
  createAnswer(coding, Buffer.alloc(bytes), 'a'.repeat(32), 0)

test('a cached answer is found in its own content coding only', () => {
  const cache = createAnswerCache(100_000)
  cache.put('/a', 'osv', answer(10))
  expect(cache.get('/a', 'gzip')?.body).toHaveLength(10)
  expect(cache.get('/a', 'identity')).toBeUndefined()
  cache.put('/a', 'osv', answer(20, 'identity'))
  expect(cache.get('/a', 'identity')?.body).toHaveLength(20)
  expect(cache.get('/a', 'gzip')?.body).toHaveLength(10)
})

test('the cache never exceeds its limit of bytes', () => {
  const puts = fc.array(fc.tuple(fc.nat(50), fc.nat(20_000), fc.boolean()), { maxLength: 300 })
  fc.assert(
    fc.property(puts, (steps) => {
      const cache = createAnswerCache(50_000)
      for (const [key, bytes, gzip] of steps) {
        cache.get(String(key), gzip ? 'gzip' : 'identity')
        cache.put(String(key), 'osv', answer(bytes, gzip ? 'gzip' : 'identity'))
        expect(cache.size()).toBeLessThanOrEqual(50_000)
      }
      cache.drop('osv')
      expect(cache.size()).toBe(0)
    }),
  )
})

test('an answer that is requested often stays in the cache during a scan over more than fits', () => {
  const cache = createAnswerCache(200_000)
  for (let i = 0; i < 20; i++) cache.put(`hot${i}`, 'osv', answer(1000))
  for (let i = 0; i < 5000; i++) {
    cache.get(`hot${i % 20}`, 'gzip')
    cache.put(`cold${i}`, 'osv', answer(1000))
  }
  const kept = Array.from({ length: 20 }, (_, i) => cache.get(`hot${i}`, 'gzip')).filter(Boolean)
  expect(kept.length).toBe(20)
})

test('an answer that is requested repeatedly gets into a full cache', () => {
  const cache = createAnswerCache(200_000)
  for (let i = 0; i < 1000; i++) cache.put(`old${i}`, 'osv', answer(1000))
  for (let i = 0; i < 16 && cache.get('new', 'gzip') === undefined; i++) cache.put('new', 'osv', answer(1000))
  expect(cache.get('new', 'gzip')).toBeDefined()
})

test('dropping one source from the cache keeps the other', () => {
  const cache = createAnswerCache(100_000)
  cache.put('/a', 'osv', answer(10))
  cache.put('/b', 'feeds', answer(10))
  cache.drop('osv')
  expect(cache.get('/a', 'gzip')).toBeUndefined()
  expect(cache.get('/b', 'gzip')).toBeDefined()
})

test('a cached body that is a slice does not retain its larger buffer', () => {
  const cache = createAnswerCache(100_000)
  const piece = Buffer.alloc(60_000).subarray(0, 10)
  cache.put('/a', 'osv', createAnswer('gzip', piece, 'a'.repeat(32), 0))
  expect(cache.get('/a', 'gzip')?.body.buffer.byteLength).toBe(10)
})
