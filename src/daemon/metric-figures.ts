/** A source as the gauges show it. */
interface SourceFigures {
  readonly name: string
  readonly state: string
  /** Null before the first snapshot. */
  readonly ageSeconds: number | null
  readonly records: number
  /** Lists that are served and not known to be whole. */
  readonly partialListCount: number
  /** How long the last run took; null while it runs, and before the first. */
  readonly lastRunSeconds: number | null
}

/** The inbox as the gauges show it; null while it is not available. */
type InboxFigures = Readonly<Record<string, number>> | null

/** What events came to, as the gauges show it; null without webhooks. */
type RefreshFigures = {
  readonly refreshes: number
  readonly failedRefreshes: number
  readonly latency: Readonly<Record<Stage, Quantiles | null>> | null
  readonly misses: {
    readonly unannounced: number
    readonly unconfirmed: number
    readonly warning: string | null
  } | null
} | null

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

/** Outbox and inbox, as the gauges show them; null for one that the settings do not name. */
interface BoxesFigures {
  readonly outbox: {
    readonly last: { readonly sequence: number } | null
    readonly problem: string | null
  } | null
  readonly inbox: {
    readonly waiting: readonly unknown[]
    readonly problem: string | null
    readonly imported: number
    readonly superseded: number
    readonly refused: number
  } | null
}

/** What scanners read, as the gauges show it. */
interface ViewsFigures {
  readonly kind: string
  readonly state: string
  readonly making: boolean
  readonly failing: boolean
}

/** All that the page shows besides what is counted. */
export interface Figures {
  readonly sources: readonly SourceFigures[]
  readonly inbox: InboxFigures
  readonly refresh: RefreshFigures
  readonly relay: readonly RelayFigures[]
  readonly bundle?: BundleFigures
  readonly views?: readonly ViewsFigures[]
  readonly boxes?: BoxesFigures
  readonly storage?: { readonly state: string; readonly freeBytes: number | null }
}

/** How long events took, from being received to each of these, milliseconds. */
export const STAGES = ['stored', 'refreshed', 'visible'] as const
type Stage = (typeof STAGES)[number]
type Quantiles = Readonly<Record<'median' | 'p99', number>>
