import type { SourceName } from '../../src/base/domain/sources.ts'
import type { SourceStatus } from '../../src/base/reports/sources.ts'
import type { PageFigures } from '../../src/server/status/routes.ts'

const WRONG = ['failed', 'quarantined', 'partial']

/** Returns a source of which nothing is wrong, as the status has it, but for what is given. A wrong state is that of the last run. */
export function sourceStatus(name: SourceName, more: Partial<SourceStatus> = {}): SourceStatus {
  const { state = 'complete', lastRun = null } = more
  return {
    name,
    state: 'complete',
    snapshot: 'aa',
    served: 'aa',
    contentDigest: 'bb',
    records: 1,
    comparedAt: null,
    scope: null,
    asOf: '2026-07-01T05:58:00.000Z',
    ageSeconds: 3600,
    lastSuccessAt: null,
    lastChangeAt: null,
    openQuarantines: 0,
    waiting: [],
    rejected: null,
    failingSince: null,
    doubtful: null,
    partialLists: [],
    partialListCount: 0,
    unprovedLists: [],
    partial: false,
    missing: null,
    unsynced: null,
    scopeChanged: null,
    signatures: null,
    lastRun: null,
    wrongRun: WRONG.includes(state) ? lastRun : null,
    progress: null,
    nextRunAt: null,
    ...more,
  }
}

/** What the metrics show of a mirror that mirrors nothing. */
export const NO_FIGURES: PageFigures = {
  version: 'test',
  instance: null,
  uptimeSeconds: null,
  sources: [],
  contentDigest: null,
  storage: { state: 'ok', reason: null, freeBytes: null },
  relay: [],
  bundle: null,
  problems: [],
  ready: false,
  dataBytes: null,
}
