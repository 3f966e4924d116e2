import { afterEach, beforeEach, expect, test, vi } from 'vitest'
import { createRetries } from '../../src/daemon/schedule.ts'

beforeEach(() => void vi.useFakeTimers({ now: 1_000_000 }))
afterEach(() => void vi.useRealTimers())

test('a first sync that failed is tried again in a minute, which is its next run, unless something is stored by then', () => {
  const retried: string[] = []
  const stored = new Set<string>()
  const retries = createRetries(
    (source) => stored.has(source),
    (source) => retried.push(source),
  )
  expect(retries.nextAt('osv')).toBeNull()
  retries.plan('osv')
  retries.plan('catalog')
  retries.postponed('feeds')
  expect(retries.nextAt('osv')).toBe(1_060_000)
  expect(retries.nextAt('feeds')).toBe(1_060_000)
  stored.add('catalog')
  vi.advanceTimersByTime(60_000)
  expect(retried).toEqual(['osv'])
  expect([retries.nextAt('osv'), retries.nextAt('feeds')]).toEqual([null, null])
  retries.plan('osv')
  retries.stop()
  retries.plan('osv')
  vi.advanceTimersByTime(60_000)
  expect(retried).toEqual(['osv'])
})
