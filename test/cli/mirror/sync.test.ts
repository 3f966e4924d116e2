import { expect, test } from 'vitest'
import { describe } from '../../../src/cli/mirror/sync.ts'
import type { Run } from '../../../src/store/runs/runs.ts'

const report = (facts: Run['facts'], state: Run['state'] = 'complete'): Run => ({
  id: 6,
  pid: 1,
  source: 'catalog',
  kind: 'sync',
  trigger: 'command',
  state,
  startedAt: 1,
  endedAt: 2,
  code: null,
  message: '5 removed',
  snapshot: null,
  asOf: null,
  facts: { requests: 7, bytes: 0, ...facts },
})

test('a run names the first of what it removed, and a dry run what it would', () => {
  const line = 'catalog: complete (run 6, 7 requests, 0 bytes): 5 removed'
  expect(describe(report({ removed: 0 }))).toBe(line)
  expect(describe(report({ removed: 5, removedIds: ['/a', '/b', '/c', '/d', '/e'] }))).toBe(
    `${line}\n  removed: /a, /b, /c and 2 more`,
  )
  expect(describe(report({ removed: 1, removedIds: ['/a\u001b[2J'] }))).not.toContain('\u001b')
  const planned = { plannedRemoved: 2, plannedRemovedIds: ['/a', '/b'] }
  expect(describe({ ...report(planned), id: 0 })).toMatch(/\n {2}would be removed: \/a, \/b$/)
  expect(describe(report(planned, 'quarantined'))).not.toContain('would be removed:')
  expect(describe(report({ removed: 1, removedIds: ['/a'] }, 'partial'))).toMatch(
    /\n {2}removed: \/a\n {2}see why: patchmirror runs 6$/,
  )
})
