import { afterEach, beforeEach, expect, test, vi } from 'vitest'
import { nothingKnown, waitOf } from '../../src/features/fleet/knowledge.ts'

const NOON = Date.parse('2026-05-04T12:00:00Z')

beforeEach(() => void vi.useFakeTimers({ now: NOON }))
afterEach(() => void vi.useRealTimers())

test('a generation waits no longer than its activation was away at first, also when the clock is set back meanwhile', () => {
  const known = nothingKnown()
  const facts = {
    generation: 7,
    epoch: 1,
    publishedAt: NOON,
    activateAt: NOON + 10_000,
    stamp: 'a',
  }
  expect(waitOf(known, facts, Date.now())).toBe(10_000)
  vi.advanceTimersByTime(4000)
  vi.setSystemTime(NOON - 7_200_000)
  expect(waitOf(known, facts, Date.now())).toBe(6000)
  vi.setSystemTime(NOON + 7_200_000) // a suspended machine
  expect(waitOf(known, facts, Date.now())).toBeLessThanOrEqual(0)
})
