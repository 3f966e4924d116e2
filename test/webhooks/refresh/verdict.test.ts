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
    ['back by a day', -24 * HOUR],
    ['back by an hour', -HOUR],
    ['ahead by an hour', HOUR],
    ['ahead by a day', 24 * HOUR],
  ])('is looked for as often, and at the same distances, when the clock was set %s', (_, leap) => {
    const distances: number[] = []
    let now = NOW + leap
    let next = afterRefresh(row, 'absent', now)
    while (next.state === 'pending') {
      const dueAt = next.dueAt ?? 0
      distances.push(dueAt - now)
      now = dueAt
      next = afterRefresh({ ...row, ...next }, 'absent', now)
    }
    expect(distances).toEqual([25_000, 90_000, 480_000])
    expect(next).toMatchObject({ state: 'dead' })
  })

  test('is given up after the last look, also if that was late', () => {
    const last = { ...row, dueAt: NOW + 600_000 }
    expect(afterRefresh(last, 'absent', NOW + 600_000)).toMatchObject({ state: 'dead' })
    expect(afterRefresh(last, 'absent', NOW + HOUR)).toMatchObject({ state: 'dead' })
  })
})
