import { tmpdir } from 'node:os'
import { afterEach, beforeEach, expect, test, vi } from 'vitest'
import { LEADER_UNKNOWN, describeLeaderless } from '../../src/base/domain/status.ts'
import type { Figures } from '../../src/daemon/metrics/figures.ts'
import { FLEET_METRICS } from '../../src/daemon/metrics/fleet.ts'
import {
  type FleetKnowledge,
  deliveryRefusal,
  fleetStatusOf,
  nothingKnown,
  waitOf,
} from '../../src/features/fleet/knowledge.ts'
import { loadFleet } from '../../src/features/pages/pages/transfer/fleet.ts'
import type { PageCall } from '../../src/features/pages/page.ts'
import { type NodeReport, initialState } from '../../src/features/fleet/turn.ts'
import { loadQuick } from '../support/limits.ts'

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

test.each<[string, Partial<FleetKnowledge>, string, number | null]>([
  ['before the first report', {}, LEADER_UNKNOWN, null],
  [
    'while the store does not answer',
    { served: 3, report: report({ refused: null, message: 'down' }) },
    LEADER_UNKNOWN,
    null,
  ],
  [
    'while generations are refused',
    { served: 3, report: report({ refused: 'hole', message: 'a hole' }) },
    'no mirror',
    0,
  ],
  ['once all is read', { served: 3, report: report(null) }, 'no mirror', 0],
])('that no mirror leads is said where the lease was read: %s', (_, known, words, figure) => {
  const all = { ...nothingKnown(), failingSince: NOON, ...known }
  const { config } = loadQuick({ env: {}, cwd: tmpdir() })
  const status = fleetStatusOf({ config, known: all, now: Date.now }, false)
  expect(describeLeaderless(status)).toMatch(words)
  expect(deliveryRefusal(all.report)).toMatch(words)
  const [, , , , read] = FLEET_METRICS.find(([name]) => name === 'patchmirror_fleet_has_leader') ?? []
  expect(read?.({ fleet: status } as Figures)).toEqual([[figure]])
})

test.each([
  [0, 'nothing is served yet'],
  [3, 'what is stored is served'],
])('the page of the fleet says why generations are refused: %i is served', (served, effect) => {
  const { config } = loadQuick({ env: {}, cwd: tmpdir() })
  const known = {
    ...nothingKnown(),
    failingSince: NOON,
    served,
    report: report({ refused: 'hole', message: 'a hole' }),
  }
  const fleet = fleetStatusOf({ config, known, now: Date.now }, false)
  const page = loadFleet({ status: { fleet }, now: NOON } as PageCall)
  expect(page.blocks[0]).toMatchObject({ title: `The fleet fails here; ${effect}`, text: 'a hole' })
})

/** The report of a follower that read no lease. */
function report(failing: NodeReport['failing']): NodeReport {
  const { collectAt: _, ...state } = initialState(3)
  return { ...state, leadsUntil: null, lease: null, failing }
}
