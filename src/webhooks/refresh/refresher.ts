import type { Config } from '../../config/schema.ts'
import { messageOf } from '../../base/errors.ts'
import type { Logger } from '../../base/log.ts'
import { activeSources } from '../../base/domain/sources.ts'
import type { PinnedReads } from '../../store/reads.ts'
import type { InboxFault } from '../inbox/fault.ts'
import type { InboxThread } from '../inbox/thread.ts'
import type { RefreshRunner } from './batch.ts'
import { type Coalescer, type TimeSource, createCoalescer } from './coalescer.ts'
import { createReports } from './report.ts'

/** Dependencies of the refresher. */
interface RefresherOptions {
  readonly config: Config
  readonly log: Logger
  /** Unix milliseconds. */
  readonly now: () => number
  readonly inbox: InboxThread
  readonly fault: Pick<InboxFault, 'state'>
  readonly sync: RefreshRunner
  /** The pin is moved before `sync` reports that a refresh has ended. */
  readonly reads: Pick<PinnedReads, 'pinned' | 'live'>
  /** Whether there is a secret, so that events can come. */
  readonly isOn: () => boolean
  /** Adds a listener that is called when webhooks.db was written to, by any process. */
  readonly onWritten: (listener: () => void) => void
}

/** Timers and chance of this process. */
const SYSTEM: Omit<TimeSource, 'now'> = {
  after(ms, call) {
    const timer = setTimeout(call, ms)
    return () => clearTimeout(timer)
  },
  random: Math.random,
  breathe: () => new Promise((resolve) => setImmediate(resolve)),
}

/** Starts turning events into refreshes: what is pending since before, what arrives, what is replayed. */
export function startRefresher(options: RefresherOptions) {
  const { config, log, now, inbox, sync, reads } = options
  const { debounceMs } = config.webhooks
  const catalog = activeSources(config).includes('catalog') ? reads.pinned.catalog : null
  const time = { ...SYSTEM, now }
  const coalescer = createCoalescer({
    debounceMs,
    inbox,
    sync,
    catalog,
    time,
    log,
    isExplained: () => options.fault.state() !== null,
  })
  const reports = createReports({ ...options, catalog: reads.live.catalog, coalescer })
  options.onWritten(() => void takeUp(log, coalescer))
  coalescer.start()
  return {
    /** Something was stored that waits for a refresh. */
    arrived: coalescer.arrived,
    report: reports.report,
    /** Before the thread that refreshes is stopped. */
    stop(): void {
      reports.stop()
      coalescer.stop()
    },
  }
}

/** Takes up rows that a command made pending again. The relay and other commands write to the same database. */
async function takeUp(log: Logger, coalescer: Coalescer): Promise<void> {
  try {
    await coalescer.changed()
  } catch (error) {
    log.debug({}, `the inbox cannot be looked at: ${messageOf(error)}`)
  }
}
