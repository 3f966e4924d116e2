import {
  COUNT,
  MAYBE_DATE,
  MAYBE_NUMBER,
  MAYBE_TEXT,
  NUMBER,
  TEXT,
  type TypeOf,
  list,
  maybe,
  object,
  oneOf,
  optional,
} from '../schema.ts'

/*
 * Describes what receives events, and what they came to. Times in ISO 8601 UTC.
 */

/** State of the endpoints that receive events. */
const WEBHOOKS_STATUS = {
  /** `off`: without a secret every delivery is a 503. */
  state: oneOf(['on', 'off']),
  endpoints: list(object({ name: TEXT, path: TEXT })),
  /** Number of secrets that are valid now. */
  secrets: COUNT,
  /** Rows of the inbox by state; null while it is not available. */
  counts: maybe(object({ pending: COUNT, dead: COUNT, done: COUNT, ignored: COUNT })),
  oldestPendingAt: MAYBE_DATE,
  /** The last verified delivery. */
  lastReceivedAt: MAYBE_DATE,
  /** The last one that was refused; null: none since the start, which says nothing of before, or no daemon made the report. */
  lastRefusedAt: MAYBE_DATE,
  /** Why, in one of a few words, such as `signature`: no valid secret gives it. */
  lastRefusedReason: optional(MAYBE_TEXT),
  /** Why webhooks.db cannot be used, and since when where a daemon knows it; null, or not given: it can. */
  failing: optional(maybe(object({ message: TEXT, since: MAYBE_DATE }))),
}

/** Milliseconds. */
const QUANTILES = object({ median: NUMBER, p99: NUMBER })
export type Quantiles = TypeOf<typeof QUANTILES>

/** How long events took from being received until they were stored, refreshed for, and visible. */
const LATENCY = object({
  /** Number of events measured: the newest that are done. */
  events: COUNT,
  stored: maybe(QUANTILES),
  refreshed: maybe(QUANTILES),
  visible: maybe(QUANTILES),
})
export type Latency = TypeOf<typeof LATENCY>

/** What polls and events found of the same changes, within a week. */
const MISSES = object({
  /** Tags that arrived, by a poll or an event. */
  arrivals: COUNT,
  /** Of them, those that a poll found and no event announced, not even late. */
  unannounced: COUNT,
  /** `unannounced` of `arrivals`, 0 to 1; null when nothing arrived. */
  missRate: MAYBE_NUMBER,
  /** Events that named a tag, or a version of it, that was not found after their refreshes. */
  unconfirmed: COUNT,
  /** Why the subscription seems dead, and what to do; null: it does not. */
  warning: MAYBE_TEXT,
})
export type Misses = TypeOf<typeof MISSES>

/** State of events and the refreshes that they caused. */
const REFRESH = object({
  /** Refreshes that events caused, since the start. */
  refreshes: COUNT,
  failedRefreshes: COUNT,
  failuresInRow: COUNT,
  /** Null: none is running. */
  refreshingSince: MAYBE_DATE,
  /** Null while the inbox is not available, as `misses`, which are null too while no secret is valid. */
  latency: maybe(LATENCY),
  misses: maybe(MISSES),
})
export type RefreshReport = TypeOf<typeof REFRESH>

/** The report on webhooks. */
export const WEBHOOKS = object({ ...WEBHOOKS_STATUS, refresh: REFRESH })
export type WebhooksReport = TypeOf<typeof WEBHOOKS>
export type WebhooksStatus = Omit<WebhooksReport, 'refresh'>
