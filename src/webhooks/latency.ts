import type { EventTimes } from '../store/inbox-reports.ts'

/** Milliseconds: half of the events took no longer, and 99 of 100. Null without events. */
export interface Spread {
  readonly median: number
  readonly p99: number
}

/** How long events took from being received until they were stored, refreshed for, and visible. */
export interface Latency {
  /** How many events this is about: the newest that are done. */
  readonly events: number
  readonly stored: Spread | null
  readonly refreshed: Spread | null
  readonly visible: Spread | null
}

/** Sums up the times of events. A clock that was set back meanwhile counts as no time at all. */
export function latencyOf(times: readonly EventTimes[]): Latency {
  const since = (at: (one: EventTimes) => number | null): Spread | null =>
    spreadOf(
      times.flatMap((one) => {
        const end = at(one)
        return end === null ? [] : [Math.max(0, end - one.receivedAt)]
      }),
    )
  return {
    events: times.length,
    stored: since(({ storedAt }) => storedAt),
    refreshed: since(({ refreshedAt }) => refreshedAt),
    visible: since(({ visibleAt }) => visibleAt),
  }
}

/** By the nearest rank. */
function spreadOf(values: readonly number[]): Spread | null {
  const sorted = values.toSorted((a, b) => a - b)
  const rank = (share: number): number | undefined => sorted[Math.ceil(share * sorted.length) - 1]
  const [median, p99] = [rank(0.5), rank(0.99)]
  return median === undefined || p99 === undefined ? null : { median, p99 }
}
