import { within } from '../../base/pacing.ts'
import { toIsoOrNull, DAY_MS } from '../../base/time.ts'
import type { Latency, Quantiles, RefreshReport } from '../../base/reports/webhooks.ts'
import { messageOf } from '../../base/errors.ts'
import type { NewTag } from '../../store/catalog/tags.ts'
import type { EventTimes, Announcements } from '../../store/webhooks/inbox-reports.ts'
import type { Logger } from '../../base/log.ts'
import type { Coalescer } from './coalescer.ts'
import { WINDOW_MS, compareMisses } from './missed-events.ts'
import type { InboxThread } from '../inbox/thread.ts'

/** What reports are made from. */
interface ReportOptions {
  readonly log: Logger
  readonly now: () => number
  readonly inbox: Pick<InboxThread, 'call'>
  /** Lists new tags since a time, unix milliseconds. */
  readonly catalog: { readonly listNewTags: (from: number) => readonly NewTag[] }
  readonly isOn: () => boolean
  readonly coalescer: Pick<Coalescer, 'state'>
}

type Figures = Pick<RefreshReport, 'latency' | 'misses'>

/** Figures are taken this often at most, however often they are asked for, and this often at least. */
const FRESH_MS = 10_000
const EVERY_MS = 60_000
/** A status page does not wait for a disk: after this long it shows the figures of the last time. */
const PATIENCE_MS = 200

/** Computes the figures every minute, and logs once when a subscription seems dead. */
export function createReports(options: ReportOptions) {
  const { log, now, coalescer } = options
  const startedAt = now()
  let figures: Figures = { latency: null, misses: null }
  let takenAt = -Infinity
  let taking: Promise<void> | null = null
  const take = async (): Promise<void> => {
    try {
      const before = figures.misses?.warning ?? null
      figures = await figuresOf(options, startedAt)
      takenAt = now()
      const warning = figures.misses?.warning ?? null
      if (warning !== null && before === null) log.warn({}, warning)
      if (warning === null && before !== null) log.info({}, 'webhooks: events are coming again')
    } catch (error) {
      figures = { latency: null, misses: null }
      log.debug({}, `no figures of webhooks: ${messageOf(error)}`)
    }
    taking = null
  }
  const timer = setInterval(() => void (taking ??= take()), EVERY_MS).unref()
  return {
    report: async (): Promise<RefreshReport> => {
      if (now() - takenAt > FRESH_MS) await within((taking ??= take()), PATIENCE_MS, () => undefined)
      const { refreshes, failures, failuresInRow, refreshingSince: since } = coalescer.state()
      const refreshingSince = toIsoOrNull(since)
      return { refreshes, failedRefreshes: failures, failuresInRow, refreshingSince, ...figures }
    },
    stop: () => clearInterval(timer),
  }
}

async function figuresOf(options: ReportOptions, startedAt: number): Promise<Figures> {
  const { inbox, now, isOn, catalog } = options
  const at = now()
  const [times, heard] = await Promise.all([
    inbox.call('eventTimes', EVENTS),
    inbox.call('announcedSince', heardFrom(at)),
  ])
  const arrivals = catalog.listNewTags(at - WINDOW_MS)
  return figuresFrom({ times, heard, arrivals, isOn: isOn(), startedAt, now: at })
}

/** Newest events whose times are used, a count. */
export const EVENTS = 500

/** Since when it has to be known what was announced, unix milliseconds, for the figures of `now`. */
export function heardFrom(now: number): number {
  return now - WINDOW_MS - DAY_MS
}

/** What the figures are made from; times in unix milliseconds. */
interface FiguresOptions {
  readonly times: readonly EventTimes[]
  readonly heard: Announcements
  readonly arrivals: readonly NewTag[]
  readonly isOn: boolean
  readonly startedAt: number
  readonly now: number
}

/** How long events take, and what polls and events found of the same changes. */
export function figuresFrom(options: FiguresOptions): Figures {
  const { times, heard, arrivals, isOn, startedAt, now } = options
  const latency = latencyOf(times)
  if (!isOn) return { latency, misses: null }
  const misses = compareMisses({
    arrivals,
    announcements: heard.announcements,
    lastEventAt: heard.lastAt,
    // The time of the registration is unknown; events are possible since the first one, or since this start.
    expectedSince: Math.max(heard.firstAt ?? startedAt, heard.knownSince ?? -Infinity),
    now,
  })
  return { latency, misses }
}

/** Summarizes the times of events. A negative time, from a clock that went backwards, counts as zero. */
export function latencyOf(times: readonly EventTimes[]): Latency {
  const since = (at: (one: EventTimes) => number | null): Quantiles | null =>
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
function spreadOf(values: readonly number[]): Quantiles | null {
  const sorted = values.toSorted((a, b) => a - b)
  const rank = (share: number): number | undefined => sorted[Math.ceil(share * sorted.length) - 1]
  const median = rank(0.5)
  const p99 = rank(0.99)
  return median === undefined || p99 === undefined ? null : { median, p99 }
}
