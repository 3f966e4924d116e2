import { expect, test } from 'vitest'
import { judgeFleet, leaderPage } from '../../../src/server/status/fleet.ts'
import type { FleetStatus } from '../../../src/base/reports/fleet.ts'

const NOW = Date.parse('2026-11-22T12:00:00Z')
const ago = (seconds: number): string => new Date(NOW - seconds * 1000).toISOString()

const STATUS: FleetStatus = {
  url: 'file:///srv/fleet',
  name: 'b',
  site: null,
  role: 'reader',
  leads: false,
  epoch: 3,
  leader: { name: 'a', url: 'http://a:8080', epoch: 3, expiresAt: ago(-20) },
  seen: 7,
  prepared: 7,
  served: 7,
  lagSeconds: 0,
  publishedAt: ago(60),
  activatesAt: ago(40),
  failing: null,
  holdingBackSince: null,
  paused: false,
  fenced: 0,
  requests: {},
  bytes: { up: 0, down: 0 },
}
const failing = (refused: string | null, seconds: number): Pick<FleetStatus, 'failing'> => ({
  failing: { since: ago(seconds), refused, message: 'it does not answer' },
})

test.each<[string, Partial<FleetStatus>, boolean]>([
  ['serves the newest generation', {}, true],
  ['serves none yet', { served: 0, lagSeconds: null }, false],
  ['is behind for as long as is allowed', { served: 6, lagSeconds: 60 }, true],
  ['is behind for longer', { served: 6, lagSeconds: 61 }, false],
  ['cannot reach the store', failing(null, 7200), true],
  ['serves what the store has lost', failing('backwards', 7200), true],
  ['refuses generations since a short time', failing('fork', 30), true],
  ['refuses generations for longer', failing('fork', 90), false],
])('a mirror that %s', (_name, more, ready) => {
  const judged = judgeFleet({ ...STATUS, ...more }, 60, NOW)
  expect(judged.ready).toBe(ready)
  if (!ready && more.failing) expect(judged.reason).toContain('it does not answer')
})

test('the page of the leader names it, and a mirror without a fleet leads itself', () => {
  expect(leaderPage(STATUS)).toEqual({ leader: false, epoch: 3, name: 'a', url: 'http://a:8080' })
  expect(leaderPage({ ...STATUS, leads: true, leader: null, epoch: 4 })).toMatchObject({
    leader: true,
    epoch: 4,
    name: 'b',
  })
  expect(leaderPage(undefined).leader).toBe(true)
})
