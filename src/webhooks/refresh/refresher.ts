import { messageOf } from '../../core/errors.ts'
import type { Config } from '../../config/schema.ts'
import type { EventTarget } from '../../domain/image-reference.ts'
import type { Logger } from '../../core/log.ts'
import type { Announced, NewTag } from '../../store/catalog/tags.ts'
import type { Settlement } from '../../store/webhooks/inbox.ts'
import { LONGEST_WAIT_MS, visibilityOf } from './settlement.ts'
import { type Coalescer, createCoalescer } from './coalescer.ts'
import type { RefreshOutcome } from './batch.ts'
import type { RefreshReport } from '../../domain/status.ts'
import { createReports } from './report.ts'
import type { InboxThread } from '../inbox/thread.ts'

/** Dependencies of the refresher; the caller passes how to refresh and how to find what is visible. */
export interface RefresherOptions {
  readonly config: Config
  readonly log: Logger
  /** Unix milliseconds. */
  readonly now: () => number
  readonly inbox: InboxThread
  readonly refresh: (targets: readonly EventTarget[]) => Promise<RefreshOutcome>
  /** As readers see it. Null: no catalog is mirrored, so nothing that is announced can be seen. */
  readonly find: ((target: EventTarget) => Announced) | null
  /** Lists new tags since a time, unix milliseconds. */
  readonly listNewTags: (from: number) => readonly NewTag[]
  /** Whether there is a secret, so that events can come. */
  readonly isOn: () => boolean
}

/** From events in the inbox to a fresh mirror, running. */
export interface Refresher {
  /** Something was stored that waits for a refresh. */
  readonly arrived: () => void
  readonly report: () => Promise<RefreshReport>
  /** Before the thread that refreshes is stopped. */
  readonly stop: () => void
}

/** How often the inbox is asked whether another process wrote to it (`webhooks replay`), milliseconds. */
const LOOK_MS = 1_000

/** Starts turning events into refreshes: what is pending since before, what arrives, what is replayed. */
export function startRefresher(options: RefresherOptions): Refresher {
  const coalescer = createCoalescer(depsOf(options))
  const reports = createReports({ ...options, state: coalescer.state })
  const looking = watchOthers(options, coalescer)
  coalescer.start()
  return {
    arrived: coalescer.arrived,
    report: reports.report,
    stop() {
      clearInterval(looking)
      reports.stop()
      coalescer.stop()
    },
  }
}

function depsOf({ config, log, now, inbox, refresh, find }: RefresherOptions) {
  const { debounceMs, debounceMaxMs } = config.webhooks
  return {
    ...{ debounceMs, debounceMaxMs, now, refresh },
    inbox: {
      pending: (at: number, limit: number, after: number) =>
        inbox.call('pending', at, limit, after, LONGEST_WAIT_MS),
      settle: (settled: readonly Settlement[]) => inbox.settle(settled),
      nextDueAt: () => inbox.call('nextDueAt'),
    },
    look: (target: EventTarget) => (find === null ? null : visibilityOf(target, find)),
    after: (ms: number, call: () => void) => {
      const timer = setTimeout(call, ms)
      return () => clearTimeout(timer)
    },
    random: Math.random,
    breathe: () => new Promise<void>((resolve) => setImmediate(resolve)),
    warn: (message: string) => log.warn({}, message),
  }
}

/** Rows that a command made pending again are taken up like new ones. */
function watchOthers({ inbox, log }: RefresherOptions, coalescer: Coalescer): NodeJS.Timeout {
  const look = async (): Promise<void> => {
    try {
      if (await inbox.changed()) coalescer.arrived()
    } catch (error) {
      log.debug({}, `the inbox cannot be looked at: ${messageOf(error)}`)
    }
  }
  return setInterval(() => void look(), LOOK_MS).unref()
}
