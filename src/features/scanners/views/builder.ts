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
import { createAlarm, createWaits } from './waits.ts'

/** What a keeper is made from. */
interface ViewsBuilderOptions extends ViewsStateOptions {
  readonly log: Pick<Logger, 'info' | 'warn'>
  /** Where newer snapshots are kept back: what is served. */
  readonly servedPin?: ServedPin | undefined
  /** Another generation can be served. */
  readonly onMade: () => void
  /** Whether a run is under way that publishes what a kind shows. */
  readonly isRunning?: (kind: ViewsKind) => boolean
  /** Snapshots that follow each other closely are made into one generation: waits so long, milliseconds. */
  readonly settleMs?: number
  /** Pause before a failed build is retried, and between two rebuilds, milliseconds. */
  readonly retryMs?: number
}

/** Makes views whenever there is something to show that they do not show yet. */
interface ViewsBuilder {
  /** Something may have been published. */
  look(): void
  /** Builds missing views at once, for a waiting request. */
  wanted(): void
  /** Rebuilds views that cannot be read. */
  damaged(kind: ViewsKind): void
  report(): ViewsStatus[]
  /** Ends what is under way. */
  close(): Promise<void>
}

const SETTLE_MS = 2_000
const RETRY_MS = 60_000
const LOCKED_RETRY_MS = 2_000

/** Keeps the views at the served snapshot. Builds one kind at a time; starts no thread while nothing is to be built. */
export function createViewsBuilder(options: ViewsBuilderOptions): ViewsBuilder {
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
    look: () => plan(performance.now() + settleMs),
    wanted() {
      if (closed) return
      waits.hurry()
      if (running === null) alarm.set(0) // else what is missing is built when that one has ended
    },
    damaged(kind) {
      if (rebuilds.has(kind)) return
      rebuilds.add(kind)
      if (isSoon()) waits.hold(kind, state.wantedOf(kind), retryMs)
      else waits.release(kind)
      plan()
    },
    report: () => state.reports({ making: running?.kind ?? null, isFailing }),
    async close() {
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

/** Logs a line for what was made, for the first failure of its kind, and once for the same documents that are missing. */
function createTeller({ log, config }: ViewsBuilderOptions) {
  const errors = new Map<ViewsKind, string>()
  let missing = ''
  const tellUnread = (): void => {
    const unread = unreadVexIn(config.data.dir)
    const isTold = missing === unread.join()
    missing = unread.join()
    if (unread.length > 0 && !isTold)
      log.warn(
        { kind: 'vex' },
        `views: VEX documents that are damaged and missing in the repository: ${unread.length}; "patchmirror verify --repair" fetches them again`,
      )
  }
  const tell = (kind: ViewsKind, outcome: ViewsOutcome): void => {
    if ('failed' in outcome) {
      const before = errors.get(kind)
      errors.set(kind, outcome.failed)
      if (!outcome.locked && outcome.failed !== before)
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
