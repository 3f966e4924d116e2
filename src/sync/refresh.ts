import type { EventTarget } from '../domain/image-reference.ts'
import type { SourceName } from '../domain/sources.ts'
import type { RequestOutcome } from './run-queue.ts'
import type { RunReport, RunRequest } from './runner.ts'

/**
 * How a refresh came out. `ok`: every source that it asked for was looked at. A partial run counts: what it lacks may have
 * nothing to do with the event, and whether the thing announced is there is for `findAnnounced` to tell; but not one that
 * could not read the list of tags. Nor does a catalog in quarantine count, which publishes nothing. A feed in quarantine
 * does: it waits for a person's decision, and asking again would change nothing.
 */
export interface RefreshResult {
  /** Of the runs that took place, in the order in which sources are shown. */
  reports: RunReport[]
  ok: boolean
  /** Why it is not ok, in one line; null when it is. */
  reason: string | null
}

/** The sources that an event can concern; users are none of them. */
const CONCERNED: readonly SourceName[] = ['feeds', 'osv', 'catalog']

/** Makes the refresh over a way to ask for runs. Of the catalog only what an event can touch is looked at. */
export function createRefresh(
  active: readonly SourceName[],
  ask: (request: RunRequest) => Promise<RequestOutcome>,
): (targets: readonly EventTarget[]) => Promise<RefreshResult> {
  const sources = active.filter((source) => CONCERNED.includes(source))
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
    const reasons = outcomes.flatMap((outcome) =>
      'failure' in outcome ? [outcome.failure] : refusalsOf(outcome.report),
    )
    const reason = reasons.length === 0 ? null : [...new Set(reasons)].join('; ')
    return { reports, ok: reason === null, reason }
  }
}

/** The list without which nothing can be said of a tag, as runs name it. */
const TAGS = '/v1/tags'

function refusalsOf({ source, state, message, facts }: RunReport): string[] {
  const failed = state === 'failed' || (state === 'quarantined' && source === 'catalog')
  if (failed) return [`${source}: ${state}: ${message ?? ''}`]
  const lists = facts['listsFailed']
  const blind = source === 'catalog' && Array.isArray(lists) && lists.includes(TAGS)
  return blind ? [`${source}: ${TAGS} could not be read`] : []
}
