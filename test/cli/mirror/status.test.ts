import { tmpdir } from 'node:os'
import { expect, test } from 'vitest'
import type { SourceState, SourceStatus, Status } from '../../../src/api/status/report.ts'
import { statusExitCode } from '../../../src/cli/mirror/status.ts'
import { loadConfig } from '../../../src/config/load.ts'
import type { SourceName } from '../../../src/domain/sources.ts'

const HOUR = 3600

function source(name: SourceName, state: SourceState, ageSeconds = HOUR): SourceStatus {
  const at = state === 'never' ? null : '2026-07-01T00:00:00.000Z'
  const id = state === 'never' ? null : 'ab'.repeat(32)
  const lists = { partialLists: [], partialListCount: 0 }
  const times = { asOf: at, ageSeconds: at === null ? null : ageSeconds, comparedAt: at }
  return { name, state, snapshot: id, served: id, records: 1, lastRun: null, nextRunAt: null, ...lists, ...times } // prettier-ignore
}

/** Of feeds and osv, in these states; the first as old as given. */
function statusOf(states: readonly SourceState[], ageSeconds = HOUR): Status {
  const [feeds = 'complete', osv = 'complete'] = states
  const sources = [source('feeds', feeds, ageSeconds), source('osv', osv)]
  const storage = { state: 'ok', reason: null, freeBytes: 1e9 } as const
  return { version: '1', instance: null, uptimeSeconds: null, sources, storage, relay: [], bundle: null } // prettier-ignore
}

const { config } = loadConfig({
  env: { PATCHMIRROR_UPSTREAM_API_ROOT: 'http://127.0.0.1:9' },
  cwd: tmpdir(),
})

test.each<[number, SourceState[], number?]>([
  [0, ['complete', 'complete']],
  [0, ['running', 'complete']],
  [1, ['failed', 'complete']],
  [4, ['quarantined', 'complete']],
  [3, ['partial', 'complete']],
  [3, ['never', 'complete']],
  [3, ['complete', 'complete'], 27 * HOUR], // older than feeds.maxAgeHours
  [1, ['failed', 'quarantined']],
  [1, ['partial', 'failed']],
  [4, ['partial', 'quarantined']],
  [4, ['quarantined', 'never']],
  [4, ['complete', 'quarantined'], 27 * HOUR],
  [1, ['failed', 'complete'], 27 * HOUR],
])('status exits %i for %j (age %s)', (code, states, age) => {
  expect(statusExitCode(statusOf(states, age), config)).toBe(code)
})

test.each(['full', 'failing'] as const)('status exits 1 when the data folder is %s', (state) => {
  const storage = { state, reason: 'why', freeBytes: 0 }
  expect(statusExitCode({ ...statusOf(['quarantined', 'partial']), storage }, config)).toBe(1)
})

test('a source that the settings do not ask for counts for nothing', () => {
  const status = statusOf(['complete', 'complete'])
  const sources = [...status.sources, source('catalog', 'never')]
  expect(statusExitCode({ ...status, sources }, config)).toBe(0)
})
