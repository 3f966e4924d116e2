import { describe, expect, test } from 'vitest'
import { NOW } from '../inbox/inboxes.ts'
import { LONGEST_WAIT_MS, LOOKS_MS, afterRefresh, pauseMs } from '../../../src/webhooks/refresh/settlement.ts'

const HOUR = 3_600_000

/** A row that was looked for once, and is to be looked for again five seconds later. */
const row = { id: 1, target: null, refreshedAt: NOW, attempts: 0, dueAt: NOW + 5_000 }

test('no row is postponed for longer than the longest wait', () => {
  for (const attempts of [1, 5, 9, 150]) expect(pauseMs(attempts, 0.999)).toBeLessThanOrEqual(LONGEST_WAIT_MS)
  expect(Math.max(...LOOKS_MS)).toBeLessThanOrEqual(LONGEST_WAIT_MS)
})

describe('an item that is not visible yet', () => {
  test.each([
    ['back', -24 * HOUR],
    ['ahead', 24 * HOUR],
  ])('is looked for again from the beginning when the clock was set %s', (_, leap) => {
    const now = NOW + leap
    const anew = { state: 'pending', refreshedAt: now, dueAt: now + 5_000 }
    expect(afterRefresh(row, 'absent', now)).toMatchObject(anew)
  })

  test('is given up after the last look, also if that was late', () => {
    const last = { ...row, dueAt: NOW + 600_000 }
    expect(afterRefresh(last, 'absent', NOW + 600_000)).toMatchObject({ state: 'dead' })
    expect(afterRefresh(last, 'absent', NOW + HOUR)).toMatchObject({ state: 'dead' })
  })
})
