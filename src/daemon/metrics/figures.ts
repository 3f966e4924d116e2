import type { SignatureCounts } from '../../base/domain/artifacts/signature.ts'
import type { BoxesStatus, EdgeTargetStatus } from '../../base/reports/transfer.ts'
import type { FleetStatus } from '../../base/reports/fleet.ts'
import type { RefreshReport } from '../../base/reports/webhooks.ts'
import type { TagFindingsStatus, ViewsStatus } from '../../base/reports/scanners.ts'

/** A source as the gauges show it. */
interface SourceFigures {
  readonly name: string
  readonly state: string
  /** Null before the first snapshot. */
  readonly ageSeconds: number | null
  /** ISO 8601, as the two below; null before the first. */
  readonly asOf: string | null
  /** End of the last run that found everything, or brought it. */
  readonly lastSuccessAt: string | null
  /** When a snapshot was last published that differs from the one before. */
  readonly lastChangeAt: string | null
  /** Start of the last run; null before the first. */
  readonly lastAttemptAt: string | null
  readonly openQuarantines: number
  /** What a run of the last day published although its guard doubted it; null or absent: nothing that is not acknowledged. */
  readonly doubtful?: { readonly kinds: readonly { readonly records: number }[] } | null
  readonly records: number
  /** Lists that are served and not known to be whole. */
  readonly partialListCount: number
  /** Why it is stored and not synced any more; null: it is synced, or not meant to be. */
  readonly unsynced: string | null
  /** Numbers of artifacts by what their signatures came to; null: they are not verified. */
  readonly signatures?: SignatureCounts | null
  /** How long the last run took; null while it runs, and before the first. */
  readonly lastRunSeconds: number | null
}

/** The inbox as the gauges show it; null while it is not available. */
type InboxFigures = Readonly<Record<string, number>> | null

/** What events came to, as the gauges show it; null without webhooks. */
type RefreshFigures = Pick<RefreshReport, 'refreshes' | 'failedRefreshes' | 'latency' | 'misses'> | null

/** A target of the relay as the gauges show it: by its number, because its URL may contain a token. */
interface RelayFigures {
  readonly id: number
  readonly state: string
  readonly pending: number
  readonly givenUp: number
}

/** The bundle that was imported last, as the gauges show it; null: none ever was. */
type BundleFigures = {
  readonly sequence: number
  /** ISO 8601. */
  readonly importedAt: string
} | null

/** All that the page shows besides what is counted. */
export interface Figures {
  readonly sources: readonly SourceFigures[]
  readonly inbox: InboxFigures
  readonly refresh: RefreshFigures
  readonly relay: readonly RelayFigures[]
  readonly bundle?: BundleFigures
  readonly views?: readonly ViewsStatus[]
  readonly findings?: TagFindingsStatus
  readonly boxes?: BoxesStatus
  readonly fleet?: FleetStatus
  readonly edge?: readonly EdgeTargetStatus[]
  /** Certificates that the daemon serves with; `expiresAt` in Unix milliseconds. */
  readonly certificates?: readonly { readonly name: string; readonly expiresAt: number }[]
  /** Whether /-/ready answers 200. */
  readonly ready?: boolean
  /** What is wrong, one for each cause. */
  readonly problems?: readonly { readonly code: string; readonly level: string }[]
  readonly verified?: { readonly endedAt: string | null; readonly damagedCount: number } | null
  readonly storage?: {
    readonly state: string
    readonly freeBytes: number | null
    readonly dataBytes?: number | null
  }
}

/** How long events took, from being received to each of these, milliseconds. */
export const STAGES = ['stored', 'refreshed', 'visible'] as const

/** One series of a metric: its value (null: not shown), then the values of its labels. */
export type Sample = readonly [value: number | null, ...labels: string[]]

/** One metric of the page. */
export type Metric = readonly [
  name: string,
  help: string,
  /** A `counter` here is kept elsewhere: the page shows the value that it has there. */
  type: 'gauge' | 'counter',
  labels: readonly string[],
  series: (figures: Figures) => readonly Sample[],
]
