import { reportedRole } from './readers.ts'
import { hostname } from 'node:os'
import type { Config } from '../../config/schema.ts'
import { toIso, toIsoOrNull } from '../../base/time.ts'
import { LEADER_UNKNOWN } from '../../base/domain/status.ts'
import type { FleetStatus } from '../../base/reports/fleet.ts'
import type { GenerationFacts, NodeReport } from './turn.ts'
import type { StoreCounters } from './objects/counted-store.ts'

/** What is known of the part in the fleet, besides the thread's last report. */
export interface FleetKnowledge {
  report: NodeReport | null
  /** The id of this mirror in its fleet; null before the first report. */
  own: string | null
  /** What follows from it that not all other mirrors could be notified of the last generation; null: they were. */
  unnotified: string | null
  traffic: StoreCounters | null
  /** The generation that is served; 0: none. */
  served: number
  /** Unix milliseconds, as the two below; null: it does not fail. */
  failingSince: number | null
  behindSince: number | null
  holdingSince: number | null
  activation: NodeJS.Timeout | null
  /** When the newest generation is to be served, Unix milliseconds. */
  due: { readonly generation: number; readonly at: number; readonly latest: number } | null
  /** When the lease ends that the last report has, in elapsed time (`performance.now`), milliseconds. */
  leaseEnds: number
  fault: string | null
}

/** Returns what is known before the first report. */
export function nothingKnown(): FleetKnowledge {
  return {
    report: null,
    own: null,
    unnotified: null,
    traffic: null,
    served: 0,
    failingSince: null,
    behindSince: null,
    holdingSince: null,
    activation: null,
    due: null,
    fault: null,
    leaseEnds: 0,
  }
}

/**
 * Returns when a generation is to be served, Unix milliseconds. It is published already: its publisher's delay bounds the wait
 * also where its clock was, or is, another one.
 */
export function dueAt(known: FleetKnowledge, facts: GenerationFacts, now: number): number {
  const { generation, activateAt, publishedAt } = facts
  if (known.due?.generation === generation) return known.due.at
  const at = Math.min(activateAt, now + Math.max(0, activateAt - publishedAt))
  known.due = { generation, at, latest: performance.now() + at - now }
  return at
}

/** Returns how long a generation waits to be served, milliseconds; a clock that is set back meanwhile does not make it longer. */
export function waitOf(known: FleetKnowledge, facts: GenerationFacts, now: number): number {
  const left = dueAt(known, facts, now) - now
  return Math.min(left, (known.due?.latest ?? Infinity) - performance.now())
}

interface StatusParts {
  readonly config: Config
  readonly known: FleetKnowledge
  /** Unix milliseconds. */
  readonly now: () => number
}

/** Returns why a follower takes no deliveries. */
export function deliveryRefusal(report: NodeReport | null): string {
  return `this mirror follows its fleet and does not take webhooks: ${leaderWords(report)}. Send them there, by /-/leader`
}

function leaderWords(report: NodeReport | null): string {
  const lease = report?.lease ?? null
  // It is read before the first report, and with each look of which the store is not the trouble.
  if (lease === null && (report === null || report.failing?.refused === null)) return LEADER_UNKNOWN
  if (lease === null) return 'no mirror leads now'
  return lease.url ? `${lease.name} leads (${lease.url})` : `${lease.name} leads`
}

/** Returns the section of the status; `leads`: whether this mirror leads now. */
export function fleetStatusOf({ config, known, now }: StatusParts, leads: boolean): FleetStatus {
  const { fleet } = config
  const { report, traffic, behindSince, failingSince, fault } = known
  const { newest = null, lease = null, failing = null } = report ?? {}
  const message = fault ?? failing?.message ?? null
  const epoch = (leads ? report?.leads : newest?.epoch) ?? 0
  const hasData = known.served > 0
  return {
    url: fleet.url ?? '',
    name: fleet.ownName ?? hostname(),
    site: fleet.site,
    role: reportedRole(fleet.role),
    leads,
    epoch,
    leader: lease && leaderOf(lease),
    seen: newest?.generation ?? 0,
    prepared: report?.prepared ?? 0,
    served: known.served,
    lagSeconds: hasData ? Math.max(0, Math.round((now() - (behindSince ?? now())) / 1000)) : null,
    publishedAt: toIsoOrNull(newest?.publishedAt),
    activatesAt: toIsoOrNull(newest?.activateAt),
    failing:
      message === null || failingSince === null
        ? null
        : { since: toIso(failingSince), refused: failing?.refused ?? null, message },
    holdingBackSince: toIsoOrNull(known.holdingSince),
    paused: leads && report?.paused === true,
    fenced: report?.fenced ?? 0,
    requests: traffic?.requests ?? {},
    bytes: traffic?.bytes ?? { up: 0, down: 0 },
  }
}

function leaderOf({ name, url, epoch, expiresAt }: NonNullable<NodeReport['lease']>) {
  return { name, url, epoch, expiresAt }
}
