import fc from 'fast-check'
import { expect, test } from 'vitest'
import { pauseAfter, outcomeOf } from '../../../src/features/relay/delivery-rule.ts'

const NOW = Date.UTC(2026, 4, 1)

test('the pauses of the relay grow from seconds to hours, and then stay the same', () => {
  const pauses = Array.from({ length: 11 }, (_, at) => pauseAfter(at + 1, 0.5, null) / 1000)
  expect(pauses).toEqual([...[5, 30, 120, 600, 1800, 3600, 7200, 14_400, 21_600, 21_600, 21_600]])
})

test('a pause of the relay varies by a quarter at random, and is never shorter than Retry-After', () => {
  fc.assert(
    fc.property(
      fc.integer({ min: 1, max: 1000 }),
      fc.double({ min: 0, max: 1, maxExcluded: true, noNaN: true }),
      fc.option(fc.nat(200_000_000)),
      (failures, random, wish) => {
        const plain = pauseAfter(failures, 0.5, null)
        const pause = pauseAfter(failures, random, wish)
        expect(pause).toBeGreaterThanOrEqual(Math.min(wish ?? 0, 86_400_000))
        expect(pause).toBeGreaterThanOrEqual(Math.floor(plain * 0.75))
        expect(pause).toBeLessThanOrEqual(Math.max(Math.ceil(plain * 1.25), 86_400_000))
      },
    ),
  )
})

const answered = (status: number, retryAfter: string | null = null) =>
  outcomeOf({ status, retryAfter }, { attempts: 1, targetFailures: 0, now: NOW, random: 0.5 })

test('only a 2xx completes a delivery, and only a 410 disables a target', () => {
  for (const status of [200, 201, 202, 204, 299]) expect(answered(status)).toEqual({ kind: 'done' })
  expect(answered(410)).toMatchObject({ kind: 'disabled' })
  for (const status of [100, 199, 301, 307, 400, 404, 429, 500, 503, 600])
    expect([status, answered(status).kind]).toEqual([status, 'retry'])
})

test('an answer about the event delays the event, an answer about the target delays the target', () => {
  for (const status of [400, 409, 413, 415, 422])
    expect(answered(status)).toMatchObject({ dueAt: NOW + 30_000, targetDueAt: null })
  for (const status of [302, 401, 403, 404, 405, 408, 425, 429, 500, 502, 503])
    expect(answered(status)).toMatchObject({ dueAt: NOW + 30_000, targetDueAt: NOW + 5_000 })
  expect(answered(429, '3600')).toMatchObject({ targetDueAt: NOW + 3_600_000 })
  expect(answered(429, '99999999999999')).toMatchObject({ targetDueAt: NOW + 86_400_000 })
  expect(answered(308)).toMatchObject({ reason: 'it answered 308: redirects are not followed' })
})
