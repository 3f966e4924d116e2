import type { Logger } from '../base/log.ts'
import type { Config } from '../config/schema.ts'
import { type SourceName, activeSources } from '../base/domain/sources.ts'
import type { PinnedReads } from '../store/reads.ts'
import { type Schedule, type ScheduledJob, startSchedule } from '../sync/schedule.ts'
import { changedScope } from '../store/runs/run-scope.ts'
import type { SyncThread } from '../sync/thread.ts'

/** The schedule of a daemon. */
export type Jobs = ReturnType<typeof createJobs>

/**
 * Creates the schedule of a daemon, by the settings that are in force when it starts. `isTakeover`: another mirror may have polled
 * until then, and the events that it received are lost, so all polls are due.
 */
export function createJobs(
  { config, now, log }: { config: Config; now: () => number; log: Logger },
  reads: PinnedReads,
  thread: SyncThread,
  isTakeover: boolean,
) {
  let schedule: Schedule | null = null
  const start = (): void => {
    const jobs = scheduledJobs(config, reads, thread, { isTakeover, now })
    schedule = startSchedule(jobs, { ...config.sync, now, log })
  }
  return {
    start,
    /** Starts what was missed while the program was down. */
    catchUp: (): void => schedule?.catchUp(),
    /** Takes over changed settings. */
    restart(): void {
      if (schedule === null) return
      schedule.handOver() // what was due by the settings before
      start()
    },
    stop(): void {
      schedule?.stop()
      schedule = null
    },
    nextRunAt: (source: SourceName): number | null => schedule?.nextRunAt(source) ?? null,
  }
}

/**
 * What the schedule runs: a poll for each source that the settings ask for, and the reconcile. Nothing without any
 * source. A source whose scope the settings changed is due at once.
 */
function scheduledJobs(
  config: Config,
  { live }: PinnedReads,
  thread: SyncThread,
  { isTakeover, now }: { isTakeover: boolean; now: () => number },
): ScheduledJob[] {
  const expressions: Record<SourceName, string> = {
    osv: config.osv.schedule,
    feeds: config.feeds.schedule,
    catalog: config.catalog.schedule,
    identity: config.identity.schedule,
  }
  const polls = activeSources(config).map((source): ScheduledJob => ({
    name: source,
    expression: expressions[source],
    // Read when missed starts are made up for: the rows of killed runs, also of commands, are closed by then.
    get lastSuccess() {
      const last = live.runs.readLatestWholeRun(source)
      const isCurrent = last?.state === 'complete' && changedScope(live.runs, config, source) === null
      return isCurrent && !isTakeover ? last.endedAt : null
    },
    get lostRuns() {
      return live.runs.countLost(source)
    },
    run: (cause) => thread.requestSync(source, 'sync', cause),
  }))
  const reconcile: ScheduledJob = {
    name: 'osv reconcile',
    expression: config.osv.reconcileSchedule,
    // Before the first snapshot there is nothing to reconcile: the first sync reads the whole archive.
    lastSuccess: live.runs.readLastReconcile('osv') ?? live.snapshots.readSnapshot('osv')?.publishedAt ?? now(),
    get lostRuns() {
      return live.runs.countLost('osv')
    },
    run(cause) {
      thread.requestSync('osv', 'reconcile', cause)
      thread.requestSync('feeds', 'reconcile', cause)
    },
  }
  const again: ScheduledJob = {
    name: 'catalog reconcile',
    expression: CATALOG_RECONCILE,
    // Nothing is missed while the program is down: what is due stays due.
    lastSuccess: now(),
    run: (cause) => thread.requestSync('catalog', 'reconcile', cause),
  }
  if (polls.length === 0) return []
  const hasCatalog = activeSources(config).includes('catalog')
  return [...polls, reconcile, ...(hasCatalog ? [again] : [])]
}

/** How often answers of the catalog that are due are asked for: `catalog.reconcileHours` spreads them over the day. */
const CATALOG_RECONCILE = '*/15 * * * *'
/** Pause before a first sync that failed is tried again, milliseconds; one that was postponed waits as long. */
const RETRY_MS = 60_000

/** The runs that are tried again before their schedule. */
export type RunRetries = ReturnType<typeof createRetries>

/** Creates the retries; `retry` requests a run. */
export function createRetries(isStored: (source: SourceName) => boolean, retry: (source: SourceName) => void) {
  const dueAt = new Map<SourceName, number>() // elapsed time: the time of day may be set meanwhile
  const timers = new Map<SourceName, NodeJS.Timeout>()
  let isStopped = false
  const postponed = (source: SourceName): void => void dueAt.set(source, performance.now() + RETRY_MS)
  return {
    /** A run was postponed: it is tried again by its queue. */
    postponed,
    /** A first sync failed: it is tried again, unless something is stored by then. */
    plan(source: SourceName): void {
      if (isStopped) return // the run was stopped with the daemon
      postponed(source)
      clearTimeout(timers.get(source))
      const again = (): void => {
        if (!isStored(source)) retry(source)
      }
      timers.set(source, setTimeout(again, RETRY_MS).unref())
    },
    /** Tries nothing again from now on. */
    stop(): void {
      isStopped = true
      timers.forEach(clearTimeout)
    },
    /** When a run of a source is tried again, Unix milliseconds; null: at its schedule. */
    nextAt(source: SourceName): number | null {
      const wait = (dueAt.get(source) ?? 0) - performance.now()
      return wait > 0 ? Date.now() + wait : null
    },
  }
}
