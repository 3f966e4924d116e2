import type { Config } from '../../config/schema.ts'
import { describeRetry } from '../../base/domain/progress.ts'
import type { Readiness, SourceReadiness, Verdict } from '../../base/reports/readiness.ts'
import type { SourceName } from '../../base/domain/sources.ts'
import type { ViewsStatus } from '../../base/reports/scanners.ts'
import { judgeFleet } from './fleet.ts'
import { openSourceStatus } from './open-status.ts'
import { ageKind, describeOverAge } from './age.ts'
import type { Served } from './part-problems.ts'
import { unreadyProblems } from './problems.ts'

/**
 * Ready: nothing is wrong (`problemsOf`) for which a mirror is not: every source is served, by upstream's date no older than its
 * `maxAgeHours`, the data folder is writable, what was made for scanners can be read, and in a fleet what it published is served.
 */
export function judgeReadiness(
  status: Served,
  config: Config,
  active: readonly SourceName[],
  now = Date.now(),
): Readiness {
  const { sources, storage, fleet, views = [] } = status
  const own = sources.map(openSourceStatus).filter(({ name }) => active.includes(name))
  const judged = own.map((source): SourceReadiness => {
    const { name, state, asOf, ageSeconds, progress, wrongRun } = source
    if (asOf === null) {
      const repeated = progress?.retry ? `; ${describeRetry(progress.retry)}` : ''
      const failed = state === 'failed' ? `: the last run failed (${wrongRun?.code ?? 'unknown'})` : ''
      const why = state === 'running' ? `: the first run is in progress${repeated}` : failed
      return { name, ready: false, reason: `nothing mirrored yet${why}` }
    }
    const isReady = ageKind(source, config) === null
    const over = describeOverAge(config, name, ageSeconds)
    const limit = over ?? `within sync.maxAgeHours (${config[name].maxAgeHours})`
    const verdict = { name, ready: isReady, reason: `as of ${asOf}, ${limit}` }
    const partialLists = source.partialLists.map(({ path }) => path)
    return partialLists.length === 0 ? verdict : { ...verdict, partialLists }
  })
  const room = { ready: storage.state === 'ok', ...storage }
  const followed = fleet && judgeFleet(fleet, config.fleet.maxLagSeconds, now)
  const shown = judgeViews(views)
  const ready = unreadyProblems(status, own, config, now).length === 0
  return { ready, sources: judged, storage: room, ...(shown && { views: shown }), ...(followed && { fleet: followed }) }
}

/** Judges what is made for scanners; null: nothing is to be said. Views that were not made yet are no longer missing than a sync takes. */
function judgeViews(views: readonly Pick<ViewsStatus, 'state' | 'failing'>[]): Verdict | null {
  const unreadable = views.find(({ state }) => state === 'unreadable')
  if (unreadable === undefined) return null
  const now = unreadable.failing ? 'the last try to build them failed: see the log' : 'they are being built again'
  const why = 'the views for scanners were made by another version of the program, or are damaged'
  return { ready: false, reason: `${why}: ${now}, and /osv/ and /-/match answer 503 until then` }
}
