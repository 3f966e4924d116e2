import { AWAITED_LISTS, REFRESHED_SOURCES, type RefreshOutcome } from '../base/domain/event-types.ts'
import type { EventTarget } from '../base/domain/image-reference.ts'
import type { SourceName } from '../base/domain/sources.ts'
import type { RequestOutcome } from './run-queue.ts'
import type { Run } from '../store/runs/runs.ts'
import type { RunRequest } from './context.ts'

/**
 * Creates the refresh function; `ask` requests one run. The catalog run fetches only what an event can change. `reports`: the runs that
 * took place, in the order of the sources.
 */
export function createRefresh(
  active: readonly SourceName[],
  ask: (request: RunRequest) => Promise<RequestOutcome>,
): (targets: readonly EventTarget[]) => Promise<RefreshOutcome & { reports: Run[] }> {
  const sources = active.filter((source) => REFRESHED_SOURCES.includes(source))
  return async (targets) => {
    const outcomes = await Promise.all(
      sources.map((source) =>
        ask(
          source === 'catalog'
            ? { source, kind: 'refresh', trigger: 'webhook', targets }
            : { source, kind: 'sync', trigger: 'webhook' },
        ),
      ),
    )
    const reports = outcomes.flatMap((outcome) => ('report' in outcome ? [outcome.report] : []))
    const refusals = outcomes.map((outcome) => ('failure' in outcome ? [outcome.failure] : refusalsOf(outcome.report)))
    const reason = joined(refusals.flat())
    const ofCatalog = refusals[sources.indexOf('catalog')] ?? refusals.flat()
    return { reports, ok: reason === null, reason, imageReason: joined(ofCatalog) }
  }
}

function joined(reasons: readonly string[]): string | null {
  return reasons.length === 0 ? null : [...new Set(reasons)].join('; ')
}

function refusalsOf({ source, state, message, facts }: Run): string[] {
  const failed = state === 'failed' || state === 'stopped' || (state === 'quarantined' && source === 'catalog')
  if (failed) return [`${source}: ${state}: ${message ?? ''}`]
  const lists = facts['listsFailed']
  if (source !== 'catalog' || !Array.isArray(lists)) return []
  const missing = AWAITED_LISTS.filter((path) => lists.includes(path))
  return missing.map((path) => `${source}: ${path} could not be read`)
}
