import { toIso } from '../core/time.ts'
import type { Config } from '../config/schema.ts'
import type { Logger } from '../core/log.ts'
import type { ServedPin } from '../store/pin.ts'
import type { Reads } from '../store/reads.ts'
import { openViews } from '../store/views/reads.ts'
import type { ViewsStatus } from '../domain/status.ts'
import {
  type ViewsKind,
  generationDir,
  readCurrentViews,
  unreadVexIn,
} from '../store/views/generations.ts'
import { derivedVendors } from './osv/ecosystems.ts'
import { osvViewsName } from './osv/views.ts'
import { MirrorError, messageOf } from '../core/errors.ts'
import { type RunningTask, startTask } from '../threads/task.ts'
import { workerFile } from '../threads/worker-file.ts'
import type { ViewsReport, ViewsTask } from './task.ts'

/** What a keeper is made from. */
interface ViewsBuilderOptions {
  readonly config: Pick<Config, 'views' | 'data'>
  readonly log: Pick<Logger, 'info' | 'warn'>
  /** What is served now. */
  readonly reads: Pick<Reads, 'snapshots' | 'osv'>
  /** Where newer snapshots are kept back: what is served. */
  readonly servedPin?: ServedPin | undefined
  /** Another generation can be served. */
  readonly onMade: () => void
  /** Snapshots that follow each other closely are made into one generation: waits so long, milliseconds. */
  readonly settleMs?: number
  /** Pause before a failed build is retried, and between two rebuilds, milliseconds. */
  readonly retryMs?: number
  readonly now?: () => number
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
  const { config, onMade, settleMs = SETTLE_MS, retryMs = RETRY_MS, now = Date.now } = options
  const rebuilds = new Set<ViewsKind>()
  const isSoon = createPace(retryMs, now)
  const errors = new Map<ViewsKind, string>()
  const oddOf = createOddCount(config.data.dir)
  let running: { readonly task: RunningTask<ViewsReport>; readonly kind: ViewsKind } | null = null
  let [timer, closed]: [NodeJS.Timeout | null, boolean] = [null, false]
  const after = (ms: number): void => {
    if (closed || running !== null) return
    if (timer !== null) clearTimeout(timer)
    timer = setTimeout(begin, ms).unref()
  }
  const next = (): ViewsKind | undefined => {
    const missing = kindsOf(options).filter((kind) => rebuilds.has(kind) || lacks(options, kind))
    return missing.find((kind) => !errors.has(kind)) ?? missing[0] // a failed kind is retried last
  }
  const begin = (): void => {
    timer = null
    const kind = next()
    if (kind === undefined || closed) return
    const [vendors, rebuild] = [derivedVendors(config.views), rebuilds.delete(kind)]
    const task = startBuild(options, { kind, vendors, rebuild })
    running = { task, kind }
    void outcomeOf(task).then((outcome) => ended(kind, outcome))
  }
  const ended = (kind: ViewsKind, outcome: ViewsOutcome): void => {
    running = null
    if (closed) return
    tell(options, kind, outcome, errors.get(kind))
    if ('failed' in outcome) errors.set(kind, outcome.failed)
    else errors.delete(kind)
    if ('made' in outcome) onMade()
    const waiting = next()
    const isStill = waiting === kind && isStillUnread(options, kind, outcome)
    const pause = 'locked' in outcome && outcome.locked ? LOCKED_RETRY_MS : retryMs
    if (waiting !== undefined) after(errors.has(waiting) || isStill ? pause : 0)
  }
  return {
    look() {
      if (timer === null && next() !== undefined) after(settleMs)
    },
    wanted: () => after(0),
    damaged(kind) {
      if (rebuilds.has(kind)) return
      rebuilds.add(kind)
      after(isSoon() ? retryMs : 0)
    },
    report: () =>
      kindsOf(options).map((kind) => ({
        ...stateOf(options, kind),
        ...{ making: running?.kind === kind, failing: errors.has(kind), odd: oddOf(kind) },
      })),
    async close() {
      closed = true
      if (timer !== null) clearTimeout(timer)
      await running?.task.stop()
    },
  }
}

/** Returns the number of malformed records of the current generation, read once for each; null if none can be read. */
function createOddCount(dataDir: string): (kind: ViewsKind) => number | null {
  let counted: { readonly name: string; readonly odd: number } | null = null
  return (kind) => {
    const name = kind === 'osv' ? readCurrentViews(dataDir, kind)?.name : undefined
    if (name === undefined) return null
    if (counted?.name === name) return counted.odd
    try {
      const views = openViews(generationDir(dataDir, name))
      counted = { name, odd: views.info.odd }
      views.close()
      return counted.odd
    } catch {
      return null // the serving side requests a rebuild
    }
  }
}

/** Whether the last rebuild was a short time ago: damage that a rebuild does not repair has another cause. */
function createPace(ms: number, now: () => number): () => boolean {
  let last = -Infinity
  return () => {
    const since = Math.abs(now() - last)
    last = now()
    return since < ms
  }
}

/** One line for what was made, and for the first failure of its kind. */
function tell(
  { log }: ViewsBuilderOptions,
  kind: ViewsKind,
  outcome: ViewsOutcome,
  before: string | undefined,
): void {
  if ('made' in outcome) {
    const { made } = outcome
    if (made === null) return
    log.info({ kind, ...made }, `views: ${NAMES[kind]} is made`)
    if ('unread' in made)
      log.warn({ kind }, `views: VEX documents that are damaged and missing in the repository: ${made.unread}; "patchmirror verify --repair" fetches them again`) // prettier-ignore
    if ('skipped' in made)
      log.warn({ kind }, `views: package URLs of VEX documents are too long and were skipped: ${made.skipped.join(', ')}`) // prettier-ignore
  } else if (!outcome.locked && outcome.failed !== before)
    log.warn({ kind }, `views: ${NAMES[kind]} cannot be made: ${outcome.failed}; it is tried again`)
}

const NAMES: Record<ViewsKind, string> = { osv: 'the bucket', vex: 'the VEX repository' }

function stateOf(
  options: ViewsBuilderOptions,
  kind: ViewsKind,
): Omit<ViewsStatus, 'making' | 'failing' | 'odd'> {
  const current = readCurrentViews(options.config.data.dir, kind)
  if (current === null) return { kind, state: 'none', snapshot: null, madeAt: null }
  const state = lacks(options, kind) ? 'behind' : 'current'
  const madeAt = toIso(current.since)
  return { kind, state, snapshot: current.snapshot, madeAt }
}

/** The view kinds that the settings ask for and the stored data allows. */
function kindsOf({ config, reads }: ViewsBuilderOptions): ViewsKind[] {
  const { bucket, query, vex } = config.views
  const hasCatalog = reads.snapshots.readSnapshot('catalog') !== null // synced, or imported below a gap
  return [
    ...(bucket || query ? (['osv'] as const) : []),
    ...(vex && hasCatalog ? (['vex'] as const) : []),
  ]
}

/** Whether the views show less than what is served; false when there is nothing to show. */
function lacks({ config, reads }: ViewsBuilderOptions, kind: ViewsKind): boolean {
  const current = readCurrentViews(config.data.dir, kind)
  if (kind === 'osv') {
    const name = osvViewsName(reads, derivedVendors(config.views))
    return name !== null && current?.name !== name
  }
  const snapshot = reads.snapshots.readSnapshot('catalog')
  if (snapshot === null) return false
  const isOld = current?.snapshot !== snapshot.id || current.asOf === null
  return isOld || unreadVexIn(config.data.dir).length > 0
}

/** Whether nothing was made although documents are missing: they are still damaged. */
function isStillUnread(
  { config }: ViewsBuilderOptions,
  kind: ViewsKind,
  outcome: ViewsOutcome,
): boolean {
  const isNothing = 'made' in outcome && outcome.made === null
  return kind === 'vex' && isNothing && unreadVexIn(config.data.dir).length > 0
}

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
type ViewsOutcome =
  { readonly made: ViewsReport } | { readonly failed: string; readonly locked: boolean }

function outcomeOf(task: RunningTask<ViewsReport>): Promise<ViewsOutcome> {
  return task.result.then(
    (made) => ({ made }),
    (error: unknown) => {
      const locked = error instanceof MirrorError && error.code === 'locked'
      return { failed: messageOf(error), locked }
    },
  )
}
