/*
 * What the report at /-/status says of the parts of a daemon: declared once, for the part that makes it and for those that
 * show it. Times in ISO 8601 UTC. Nothing in it is secret or contains the name of a folder.
 */

/** Whether a source that is stored is synced as well. */
export interface SourceSyncing {
  /** Why it is not synced any more, and the setting that enables it; null: it is synced, or is not meant to be. */
  readonly unsynced: string | null
  /** Which settings of what is mirrored had other values in the last run that published, in words; null: none. */
  readonly scopeChanged: string | null
}

/** State of one kind of views. */
export interface ViewsStatus {
  readonly kind: 'osv' | 'vex'
  /**
   * `current`: made from the served snapshot; `behind`: from an earlier one, or `unread` of it; `none`: not made yet;
   * `unreadable`: made by another version of the program, or damaged, and not served until they are made again.
   */
  readonly state: 'current' | 'behind' | 'none' | 'unreadable'
  /** The snapshot that they were made from; null where there are none. */
  readonly snapshot: string | null
  readonly madeAt: string | null
  readonly making: boolean
  /** The last build failed; the log has the reason. */
  readonly failing: boolean
  /** Number of records with an invalid ecosystem or package name; null where they are not counted. */
  readonly odd: number | null
  /** Number of VEX documents that are damaged, and therefore missing in them; null where they have none. */
  readonly unread: number | null
}

/** Says how many VEX documents views lack, and which command fetches them again. */
export function describeUnread(unread: number): string {
  const what = unread === 1 ? '1 document is' : `${unread} documents are`
  return `${what} damaged and missing: patchmirror verify --repair`
}

/** How far the SBOMs of the mirrored tags are judged. */
export interface TagFindingsStatus {
  /** `current`: by what is served; `behind`: by an earlier state; `none`: not yet. */
  readonly state: 'current' | 'behind' | 'none'
  readonly tags: number
  /** Of them, those whose SBOM could be read. */
  readonly judged: number
  /** The snapshots that they are judged by; null where they are not. */
  readonly osv: string | null
  readonly catalog: string | null
  readonly judgedAt: string | null
  readonly judging: boolean
  /** The last try failed; the log has the reason. */
  readonly failing: boolean
}

/** State of the outbox. */
interface OutboxStatus {
  /** The last bundle written since the start; null: none yet. */
  readonly last: {
    readonly sequence: number
    readonly kind: 'full' | 'delta'
    readonly file: string
    readonly bytes: number
    readonly at: string
  } | null
  readonly exporting: boolean
  /** Error code of the last export; null if it succeeded. */
  readonly problem: string | null
  /** Its message. */
  readonly reason: string | null
}

/** State of the inbox for bundles. Counts are since the start. */
export interface InboxStatus {
  readonly waiting: readonly { readonly file: string; readonly why: string }[]
  readonly imported: number
  readonly superseded: number
  readonly refused: number
  readonly lastRefused: {
    readonly file: string
    readonly at: string
    readonly why: string
  } | null
  /** The system's error code if the folder cannot be read; null otherwise. */
  readonly problem: string | null
}

/** State of both folders; null for one that is not configured. */
export interface BoxesStatus {
  readonly outbox: OutboxStatus | null
  readonly inbox: InboxStatus | null
}

/** State of a shared cache to purge (`edge.purge`). Counts are since the start. */
export interface EdgeTargetStatus {
  /** Its place in the settings, from 1: a URL may contain a token. */
  readonly id: number
  /** `failing`: the last purge failed and is retried. */
  readonly state: 'ok' | 'failing'
  /** Whether a purge is under way or waits. */
  readonly pending: boolean
  readonly purgedAt: string | null
  /** Of the last failure; null if it succeeded. */
  readonly reason: string | null
  readonly purged: number
  readonly failures: number
}

/** State of the endpoints that receive events. */
export interface WebhooksStatus {
  /** `off`: without a secret every delivery is a 503. */
  readonly state: 'on' | 'off'
  readonly endpoints: readonly { readonly name: string; readonly path: string }[]
  /** Number of secrets that are valid now. */
  readonly secrets: number
  /** Rows of the inbox by state; null while it is not available. */
  readonly counts: Readonly<Record<'pending' | 'done' | 'ignored' | 'dead', number>> | null
  readonly oldestPendingAt: string | null
  /** The last verified delivery, and the last one since the start that was refused. */
  readonly lastReceivedAt: string | null
  readonly lastRefusedAt: string | null
  /** Why webhooks.db cannot be used, and since when where a daemon knows it; null, or not given: it can. */
  readonly failing?: { readonly message: string; readonly since: string | null } | null
}

/** The report on webhooks: what receives events, and what they came to. */
export interface WebhooksReport extends WebhooksStatus {
  readonly refresh: RefreshReport
}

/** State of events and the refreshes that they caused. */
export interface RefreshReport {
  /** Refreshes that events caused, since the start. */
  readonly refreshes: number
  readonly failedRefreshes: number
  readonly failuresInRow: number
  /** Null: none is running. */
  readonly refreshingSince: string | null
  /** Null while the inbox is not available, as `misses`. */
  readonly latency: Latency | null
  readonly misses: Misses | null
}

/** How long events took from being received until they were stored, refreshed for, and visible. */
export interface Latency {
  /** Number of events measured: the newest that are done. */
  readonly events: number
  readonly stored: Quantiles | null
  readonly refreshed: Quantiles | null
  readonly visible: Quantiles | null
}

/** Milliseconds. */
export type Quantiles = Readonly<Record<'median' | 'p99', number>>

/** What polls and events found of the same changes, within a week. */
export interface Misses {
  /** Tags that arrived, by a poll or an event. */
  readonly arrivals: number
  /** Of them, those that a poll found and no event announced, not even late. */
  readonly unannounced: number
  /** `unannounced` of `arrivals`, 0 to 1; null when nothing arrived. */
  readonly missRate: number | null
  /** Events that named a tag which upstream never listed. */
  readonly unconfirmed: number
  /** Why the subscription seems dead, and what to do; null: it does not. */
  readonly warning: string | null
}

/** The mirror that leads a fleet, by its lease. */
interface FleetLeader {
  readonly name: string
  /** Where it takes webhooks; null: unknown. */
  readonly url: string | null
  readonly epoch: number
  /** By the leader's clock. */
  readonly expiresAt: string
}

/** What an operator reads while a rollback stops all syncs. */
export const FLEET_PAUSED = 'a rollback was published: nothing is synced until "patchmirror fleet release"'

/** State of a mirror of a fleet. Generations are numbers, 0: none. */
export interface FleetStatus {
  /** The object store, without secrets. */
  readonly url: string
  readonly name: string
  readonly site: string | null
  readonly role: 'auto' | 'writer' | 'reader' | 'standby'
  /** Whether this mirror syncs and publishes now. */
  readonly leads: boolean
  /** Null: no mirror has the lease, or the store has no lease. */
  readonly leader: FleetLeader | null
  /** Epoch of the own leadership, else of the newest known generation. */
  readonly epoch: number
  /** The newest generation that this mirror knows of. */
  readonly seen: number
  /** The newest that is downloaded and verified. */
  readonly prepared: number
  /** The one that is served. */
  readonly served: number
  /** Seconds for which the newest known generation should have been served and is not; null before the first. */
  readonly lagSeconds: number | null
  /** Of the newest known generation. */
  readonly publishedAt: string | null
  readonly activatesAt: string | null
  /** What does not work now; the mirror serves what it has. `refused`: why a generation is refused; null: another cause. */
  readonly failing: {
    readonly since: string
    readonly refused: string | null
    readonly message: string
  } | null
  /** Since when newer snapshots are stored here than are served, because they are not published or not yet active. */
  readonly holdingBackSince: string | null
  /** Whether this mirror leads and syncs nothing, because a rollback was published and not released. */
  readonly paused: boolean
  /** Times that another mirror had published under a newer lease, since the start. */
  readonly fenced: number
  /** Calls of the store since the start, by verb and then by outcome. */
  readonly requests: Readonly<Record<string, Readonly<Record<string, number>>>>
  /** Bytes of objects since the start. */
  readonly bytes: Readonly<Record<'up' | 'down', number>>
}
