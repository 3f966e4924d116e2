import type { Config } from '../../config/schema.ts'
import { MirrorError, messageOf } from '../../base/errors.ts'
import type { Logger } from '../../base/log.ts'
import { counted } from '../../base/text.ts'
import { toIsoOrNull } from '../../base/time.ts'
import type { TagFindingsStatus } from '../../base/reports/scanners.ts'
import { markOfFindings, readFindings } from '../../store/findings/database.ts'
import { whyNoTags } from '../../store/findings/words.ts'
import type { ServedPin } from '../../store/pin.ts'
import type { Reads } from '../../store/reads.ts'
import { readCurrentViews, readDamage } from '../scanners/store/generations.ts'
import { type RunningTask, startTask } from '../../base/threads/task.ts'
import { workerFile } from '../../base/threads/worker-file.ts'
import { FINDINGS_RULES } from './judge/rules.ts'
import type { FindingsReport, FindingsTask } from './task.ts'

interface KeeperOptions {
  readonly config: Pick<Config, 'match' | 'views' | 'data'>
  readonly log: Pick<Logger, 'info' | 'warn'>
  /** What is served now. */
  readonly reads: Pick<Reads, 'snapshots' | 'catalog'>
  /** Where newer snapshots are kept back: what is served. */
  readonly servedPin?: ServedPin | undefined
  /** The findings were judged again. */
  readonly onJudged?: () => void
  /** Snapshots that follow each other closely are judged together: waits so long, milliseconds. */
  readonly settleMs?: number
  /** Pause before a failed judgement is tried again, milliseconds. */
  readonly retryMs?: number
}

const SETTLE_MS = 2_000
const RETRY_MS = 60_000
/** Pause where what is read was replaced meanwhile. */
const REPLACED_RETRY_MS = 5_000
/** Heap for one SBOM at a time. */
const LIMITS = { maxYoungGenerationSizeMb: 16, maxOldGenerationSizeMb: 1000 }

/**
 * Keeps the findings of tags at the served snapshots. It starts a thread where there is something to judge, which ends with
 * that: nothing stays in memory in between.
 */
export function createFindingsKeeper(options: KeeperOptions) {
  const { log, settleMs = SETTLE_MS, retryMs = RETRY_MS } = options
  const { dir } = options.config.data
  let known = knownOrNothing(options)
  let running: RunningTask<FindingsReport | null> | null = null
  let failure: string | null = null
  let closed: boolean = false
  let pause = settleMs
  const isDone = (): boolean => !known.unread && isBroughtTo(options, known.goal)
  const begin = (): void => {
    if (closed || running !== null || isDone()) return
    running = startJudging(options)
    void running.result
      .then(made)
      .catch(failed)
      .then(() => {
        running = null
        if (!closed && !isDone()) timer.after(pause, pause > settleMs)
      })
  }
  const timer = createTimer(begin)
  const made = (report: FindingsReport | null): void => {
    if (closed) return
    const wasUnread = known.unread
    known = readKnown(options)
    failure = null
    pause = known.unread && isBroughtTo(options, known.goal) ? retryMs : settleMs
    if (report !== null) tell(log, report, wasUnread)
    options.onJudged?.()
  }
  const failed = (error: unknown): void => {
    if (closed) return
    const isReplaced = error instanceof MirrorError && ['locked', 'not_ready'].includes(error.code)
    pause = isReplaced ? REPLACED_RETRY_MS : retryMs
    if (isReplaced) return
    const why = messageOf(error)
    if (why !== failure) log.warn({}, `the SBOMs of the tags cannot be judged: ${why}; it is tried again`)
    failure = why
  }
  return {
    /** Something may have been published, or other views are in use. */
    look(): void {
      if (!closed && running === null && !isBroughtTo(options, known.goal)) timer.sooner(settleMs)
    },
    report(): TagFindingsStatus {
      if (running === null && known.mark !== markOfFindings(dir)) known = knownOrNothing(options)
      if (known.goal === null && running === null && !closed && !isDone()) timer.after(settleMs) // also where the database was deleted, or is damaged
      const { goal: _, mark: __, unread: ___, ...status } = known
      return { ...status, state: stateOf(options, known), judging: running !== null, failing: failure !== null }
    },
    /** Ends what is under way. */
    async close(): Promise<void> {
      closed = true
      timer.clear()
      await running?.stop()
    },
  }
}

/** Creates a timer of one call; it does not keep the process alive. */
function createTimer(call: () => void) {
  let timer: NodeJS.Timeout | null = null
  let isRetry = false
  const clear = (): void => {
    if (timer !== null) clearTimeout(timer)
    timer = null
  }
  const after = (ms: number, retry = false): void => {
    if (timer !== null) return
    isRetry = retry
    timer = setTimeout(() => {
      timer = null
      call()
    }, ms).unref()
  }
  return {
    /** Calls in so many milliseconds, unless it waits already; `retry`: of what was tried before. */
    after,
    /** Does the same; a retry is not waited for. */
    sooner(ms: number): void {
      if (isRetry) clear()
      after(ms)
    },
    clear,
  }
}

type Known = Omit<TagFindingsStatus, 'state' | 'judging' | 'failing'> & {
  /** What it was brought to. */
  readonly goal: string | null
  /** Whether SBOMs or VEX are damaged. */
  readonly unread: boolean
  /** Of the database that it was read from. */
  readonly mark: string
}

/** Reads what is known; nothing where that fails: the next judgement has the same reason, and the daemon goes on. */
function knownOrNothing(options: KeeperOptions): Known {
  try {
    return readKnown(options)
  } catch {
    return NOTHING
  }
}

/** Throws `storage`. */
function readKnown({ config }: KeeperOptions): Known {
  const mark = markOfFindings(config.data.dir)
  const found = readFindings(config.data.dir, (reads) => {
    const state = reads.readState()
    if (state === null || state.catalog === null) return null
    const { osv, catalog, form, generation, judgedAt } = state
    const at = toIsoOrNull(judgedAt)
    const rules = form.split(' ')[0] ?? ''
    const signatures = reads.readSignatures() ?? ''
    const goal = reads.isWhole() ? goalText({ rules, generation, catalog, signatures }) : null
    return {
      ...reads.countTags(),
      osv,
      catalog,
      judgedAt: at,
      goal,
      unread: reads.hasUnread(),
      mark,
    }
  })
  return found ?? { ...NOTHING, mark }
}

const NOTHING: Known = {
  tags: 0,
  judged: 0,
  osv: null,
  catalog: null,
  judgedAt: null,
  goal: null,
  unread: false,
  mark: '',
}

/** Whether there is nothing to judge; what cannot be read fails the judgement too. */
function isBroughtTo(options: KeeperOptions, known: string | null): boolean {
  try {
    const goal = goalOf(options)
    return goal === null || goal === known
  } catch {
    return false
  }
}

function stateOf(options: KeeperOptions, known: Known): TagFindingsStatus['state'] {
  if (known.judgedAt === null) return 'none'
  return isCurrent(options, known) ? 'current' : 'behind'
}

/** Whether the findings are of what is served: views of newer records may not be built yet. */
function isCurrent(options: KeeperOptions, { goal, osv, unread }: Known): boolean {
  if (unread || !isBroughtTo(options, goal)) return false
  const served = options.reads.snapshots.readSnapshot('osv')
  return served === null || served.id === osv
}

/** Names what the findings are to follow; null where there is nothing to judge, or nothing to judge it by. */
function goalOf({ config, reads }: KeeperOptions): string | null {
  if (whyNoTags(config) !== null) return null
  const views = readCurrentViews(config.data.dir, 'osv')
  const catalog = reads.snapshots.readSnapshot('catalog')
  if (catalog === null) return null
  if (views === null && readDamage(config.data.dir, 'osv') === null) return null
  const generation = views?.name ?? '' // damaged: nothing can be judged until they are made again
  const signatures = reads.catalog.readVexMark()
  return goalText({ rules: String(FINDINGS_RULES), generation, catalog: catalog.id, signatures })
}

/** All that the findings of tags depend on. */
interface Goal {
  readonly rules: string
  /** Of views. */
  readonly generation: string
  readonly catalog: string
  /** By which VEX is believed: a run that publishes nothing may verify otherwise. */
  readonly signatures: string
}

function goalText({ rules, generation, catalog, signatures }: Goal): string {
  return [rules, generation, catalog, signatures].join(' ')
}

function startJudging({ config, servedPin }: KeeperOptions): RunningTask<FindingsReport | null> {
  const data: FindingsTask = {
    dataDir: config.data.dir,
    served: servedPin?.stamp() ?? null,
    keepDays: config.data.historyDays,
  }
  return startTask({ file: workerFile('findings.worker', import.meta.url), data, limits: LIMITS })
}

function tell(
  log: KeeperOptions['log'],
  { records, read, gone, tags, unread, reset }: FindingsReport,
  wasUnread: boolean,
): void {
  if (reset !== null)
    log.warn({}, `the findings of the tags began again, without announcing any: their database: ${reset}`)
  if (unread && !wasUnread)
    log.warn(
      {},
      'SBOMs or VEX of the tags are damaged, and their findings are without them: "patchmirror doctor --data --repair" fetches them again',
    )
  if (records.components + read + gone + tags === 0) return
  const fields = { records, read, gone, tags }
  log.info(
    fields,
    `tags: ${counted(read, 'SBOM was', 'SBOMs were')} read; the findings of ${counted(tags, 'tag')} changed since the judgement before`,
  )
}
