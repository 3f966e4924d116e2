import type { Logger } from '../../../base/log.ts'
import type { ServedPin } from '../../../store/pin.ts'
import type { ViewsStatus } from '../../../base/reports/scanners.ts'
import { type ViewsKind, unreadVexIn } from '../store/generations.ts'
import { derivedVendors } from './osv/ecosystems.ts'
import { MirrorError, messageOf } from '../../../base/errors.ts'
import { type RunningTask, startTask } from '../../../base/threads/task.ts'
import { workerFile } from '../../../base/threads/worker-file.ts'
import { type ViewsStateOptions, createViewsState } from './state.ts'
import type { ViewsReport, ViewsTask } from './task.ts'

/** What a keeper is made from. */
interface ViewsBuilderOptions extends ViewsStateOptions {
  readonly log: Pick<Logger, 'info' | 'warn'>
  /** Where newer snapshots are kept back: what is served. */
  readonly servedPin?: ServedPin | undefined
  /** Another generation can be served. */
  readonly onMade: () => void
  /** A build failed, as where the published archive is missing. */
  readonly onFailed?: () => void
  /** Whether a run is under way that publishes what a kind shows. */
  readonly isRunning?: (kind: ViewsKind) => boolean
  /** Snapshots that follow each other closely are made into one generation: waits so long, milliseconds. */
  readonly settleMs?: number
  /** Pause before a failed build is retried, and between two rebuilds, milliseconds. */
  readonly retryMs?: number
}

const SETTLE_MS = 2_000
const RETRY_MS = 60_000
const LOCKED_RETRY_MS = 2_000

/** Keeps the views at the served snapshot. Builds one kind at a time; starts no thread while nothing is to be built. */
export function createViewsBuilder(options: ViewsBuilderOptions) {
  const { config, onMade, isRunning = () => false, settleMs = SETTLE_MS, retryMs = RETRY_MS } = options
  const rebuilds = new Set<ViewsKind>()
  const isSoon = createPace(retryMs)
  const state = createViewsState(options)
  const waits = createWaits({ wantedOf: state.wantedOf, isRunning, settleMs })
  const { tell, isFailing } = createTeller(options)
  let running: { readonly task: RunningTask<ViewsReport>; readonly kind: ViewsKind } | null = null
  let closed = false
  const next = (): ViewsKind | undefined =>
    waits.first(state.kinds().filter((kind) => rebuilds.has(kind) || state.lacks(kind)))
  const alarm = createAlarm(() => {
    const kind = next()
    if (kind === undefined) return
    const due = waits.runOf(kind)
    if (due > 0) return alarm.set(due)
    const vendors = derivedVendors(config.views)
    const rebuild = rebuilds.delete(kind)
    const wanted = state.wantedOf(kind)
    const task = startBuild(options, { kind, vendors, rebuild })
    running = { task, kind }
    void outcomeOf(task).then((outcome) => ended(kind, wanted, outcome))
  })
  /** Sets the alarm for what is to be built next, not before `earliest`. */
  const plan = (earliest = 0): void => {
    const kind = running === null && !closed ? next() : undefined
    if (kind !== undefined) alarm.set(Math.max(waits.dueOf(kind), earliest))
  }
  const ended = (kind: ViewsKind, wanted: string | null, outcome: ViewsOutcome): void => {
    running = null
    if (closed) return
    tell(kind, outcome)
    if ('made' in outcome) onMade()
    const isStill = state.lacks(kind) && state.wantedOf(kind) === wanted // as documents that are damaged
    const pause = 'locked' in outcome && outcome.locked ? LOCKED_RETRY_MS : retryMs
    if ('failed' in outcome || isStill) waits.hold(kind, wanted, pause)
    else waits.release(kind)
    plan()
  }
  return {
    /** Something may have been published. */
    look: (): void => plan(performance.now() + settleMs),
    /** Builds missing views at once, for a waiting request. */
    wanted(): void {
      if (closed) return
      waits.hurry()
      if (running === null) alarm.set(0) // else what is missing is built when that one has ended
    },
    /** Rebuilds views that cannot be read; may be called again and again. */
    damaged(kind: ViewsKind): void {
      if (rebuilds.has(kind) || running?.kind === kind) return // it is called until they are made
      rebuilds.add(kind)
      if (isSoon()) waits.hold(kind, state.wantedOf(kind), retryMs)
      else waits.release(kind)
      plan()
    },
    report: (): ViewsStatus[] => state.reports({ making: running?.kind ?? null, isFailing }),
    /** Ends what is under way. */
    async close(): Promise<void> {
      closed = true
      alarm.clear()
      await running?.task.stop()
    },
  }
}

/** Whether the last rebuild was a short time ago: damage that a rebuild does not repair has another cause. */
function createPace(ms: number): () => boolean {
  let last = -Infinity
  return () => {
    const since = performance.now() - last
    last = performance.now()
    return since < ms
  }
}

/** Logs a line for what was made, for the first failure of its kind, and once for the same documents that are missing; tells of each failure. */
function createTeller({ log, config, onFailed }: ViewsBuilderOptions) {
  const errors = new Map<ViewsKind, string>()
  let missing = ''
  const tellUnread = (): void => {
    const unread = unreadVexIn(config.data.dir)
    const isTold = missing === unread.join()
    missing = unread.join()
    if (unread.length > 0 && !isTold)
      log.warn(
        { kind: 'vex' },
        `views: VEX documents that are damaged and missing in the repository: ${unread.length}; "patchmirror doctor --data --repair" fetches them again`,
      )
  }
  const tell = (kind: ViewsKind, outcome: ViewsOutcome): void => {
    if ('failed' in outcome) {
      if (outcome.locked) return // another one makes them, or the snapshot was replaced: no failure
      onFailed?.()
      const before = errors.get(kind)
      errors.set(kind, outcome.failed)
      if (outcome.failed !== before)
        log.warn({ kind }, `views: ${NAMES[kind]} cannot be made: ${outcome.failed}; it is tried again`)
      return
    }
    errors.delete(kind)
    const { made } = outcome
    if (made !== null) log.info({ kind, ...made }, `views: ${NAMES[kind]} is made`)
    if (kind === 'vex') tellUnread()
    if (made !== null && 'skipped' in made)
      log.warn(
        { kind },
        `views: package URLs of VEX documents are too long and were skipped: ${made.skipped.join(', ')}`,
      )
  }
  return { tell, isFailing: (kind: ViewsKind): boolean => errors.has(kind) }
}

const NAMES: Record<ViewsKind, string> = { osv: 'the bucket', vex: 'the VEX repository' }

/** Makes views in a thread of its own, which ends with the task: nothing stays while there is nothing to make. */
function startBuild(
  { config, servedPin }: ViewsBuilderOptions,
  wanted: Omit<ViewsTask, 'dataDir' | 'served'>,
): RunningTask<ViewsReport> {
  const task: ViewsTask = {
    ...wanted,
    dataDir: config.data.dir,
    served: servedPin?.stamp() ?? null,
  }
  const limits = { maxYoungGenerationSizeMb: 6, maxOldGenerationSizeMb: 1000 }
  return startTask({ file: workerFile('views.worker', import.meta.url), data: task, limits })
}

/** What became of a task; `made` null: it was there already. */
type ViewsOutcome = { readonly made: ViewsReport } | { readonly failed: string; readonly locked: boolean }

function outcomeOf(task: RunningTask<ViewsReport>): Promise<ViewsOutcome> {
  return task.result.then(
    (made) => ({ made }),
    (error: unknown) => {
      const locked = error instanceof MirrorError && error.code === 'locked'
      return { failed: messageOf(error), locked }
    },
  )
}

/** A kind whose last build left something to do. */
interface Wait {
  /** Names what was to be shown. */
  readonly wanted: string | null
  readonly since: number
  readonly ms: number
}

/** Longest time that a build waits for a run, milliseconds: one may take hours. */
const LONGEST_RUN_MS = 60_000
/** Interval at which it is looked whether the run has ended, milliseconds. */
const RUN_CHECK_MS = 500

/** What the waits are made from. */
interface WaitsOptions {
  /** Names what a kind is to show. */
  readonly wantedOf: (kind: ViewsKind) => string | null
  /** Whether a run is under way that publishes what a kind shows. */
  readonly isRunning: (kind: ViewsKind) => boolean
  readonly settleMs: number
}

/**
 * Says when each kind is built next. One that waits for its retry, or for the end of the run whose snapshot it shows, delays no
 * other kind. A retry is `settleMs` after the last try when the kind is to show something else than at that try. A build
 * beside a run would be in memory with all that the run has not freed. Times are those of `performance.now()`.
 */
function createWaits({ wantedOf, isRunning, settleMs }: WaitsOptions) {
  const waits = new Map<ViewsKind, Wait>()
  const runs = new Map<ViewsKind, number>() // since when a kind waits for the end of a run
  let isUrgent = false
  const retryOf = (kind: ViewsKind): number => {
    const one = waits.get(kind)
    if (one === undefined) return 0
    return one.since + (one.wanted === wantedOf(kind) ? one.ms : Math.min(one.ms, settleMs))
  }
  const runOf = (kind: ViewsKind): number => {
    const now = performance.now()
    const since = isRunning(kind) ? (runs.get(kind) ?? now) : null
    if (since === null) runs.delete(kind)
    else runs.set(kind, since)
    return since === null || isUrgent || now - since >= LONGEST_RUN_MS ? 0 : now + RUN_CHECK_MS
  }
  /** When a kind may be built; 0: at once. */
  const dueOf = (kind: ViewsKind): number => Math.max(retryOf(kind), runOf(kind))
  return {
    dueOf,
    /** When it is looked again whether a run has ended; 0: the kind waits for none. */
    runOf,
    /** The one of these kinds that is due first. Of no kinds, nothing is urgent any more. */
    first(kinds: readonly ViewsKind[]): ViewsKind | undefined {
      if (kinds.length === 0) isUrgent = false
      return kinds.toSorted((one, other) => dueOf(one) - dueOf(other))[0]
    },
    /** A client waits for what is missing: no kind waits for a run until nothing is. */
    hurry: (): void => void (isUrgent = true),
    /** Has a kind wait for so many milliseconds, as long as `wanted` is what it is to show. */
    hold(kind: ViewsKind, wanted: string | null, ms: number): void {
      waits.set(kind, { wanted, since: performance.now(), ms })
      runs.delete(kind)
    },
    release(kind: ViewsKind): void {
      waits.delete(kind)
      runs.delete(kind)
    },
  }
}

/** Creates a timer that calls back at the earliest of the times that it is set to, once; it keeps no process running. */
function createAlarm(call: () => void) {
  let pending: { readonly timer: NodeJS.Timeout; readonly due: number } | null = null
  const clear = (): void => {
    if (pending !== null) clearTimeout(pending.timer)
    pending = null
  }
  return {
    clear,
    /** `due`: as `performance.now()`. */
    set(due: number): void {
      if (pending !== null && pending.due <= due) return
      clear()
      const ring = (): void => {
        pending = null
        call()
      }
      pending = { due, timer: setTimeout(ring, Math.max(0, due - performance.now())).unref() }
    },
  }
}
