import type { Config } from '../../config/schema.ts'
import { messageOf } from '../../base/errors.ts'
import type { Logger } from '../../base/log.ts'
import { counted } from '../../base/text.ts'
import { toIso } from '../../base/time.ts'
import { SOURCES } from '../../base/domain/sources.ts'
import { noteVerification, readLastVerification } from '../../store/notes.ts'
import type { PinnedReads } from '../../store/reads.ts'
import { type Schedule, startSchedule } from '../../sync/schedule.ts'
import type { SyncThread } from '../../sync/thread.ts'
import { noteVerified, repairRequests } from '../../sync/verify/report.ts'
import { type RunningTask, startTask } from '../../base/threads/task.ts'
import { workerFile } from '../../base/threads/worker-file.ts'
import type { ScrubReport, ScrubTask } from './task.ts'

/** What a verification on a schedule is started from. */
export interface ScrubOptions {
  readonly config: Config
  readonly log: Pick<Logger, 'info' | 'warn' | 'error' | 'debug'>
  readonly now: () => number
  readonly reads: Pick<PinnedReads, 'live'>
  readonly thread: Pick<SyncThread, 'request' | 'checkpoint'>
  /** Pause before a verification that waits for a run looks again, milliseconds; a minute when not given. */
  readonly waitMs?: number
  /** A verification ended. */
  readonly onVerified?: () => void
}

/** The verification of all that is stored, on a schedule. */
export type RunningScrub = ReturnType<typeof startScrub>

const WAIT_MS = 60_000
/** What of the damage is noted in words. */
const NAMED = 20

/**
 * Verifies what is stored each week, in a thread of the lowest priority that only reads. What is damaged and
 * can be fetched again is fetched by normal runs, after which it is verified once more.
 */
export function startScrub(options: ScrubOptions) {
  const { config, log, waitMs = WAIT_MS } = options
  let closed = false
  let isActive = false
  let task: RunningTask<ScrubReport> | null = null
  let timer: NodeJS.Timeout | null = null
  const verify = (): Promise<ScrubReport> => {
    const data: ScrubTask = { settings: { data: { ...config.data }, views: { ...config.views } } }
    task = startTask<ScrubReport>({ file: workerFile('scrub.worker', import.meta.url), data })
    return task.result.finally(() => (task = null))
  }
  const begin = (): void => {
    timer = null
    if (closed) return
    if (isAnyRunning(options)) {
      timer = setTimeout(begin, waitMs).unref()
      return
    }
    void scrubOnce(options, verify)
      .catch((error: unknown) => {
        if (!closed) log.error({}, `what is stored could not be verified: ${messageOf(error)}`)
      })
      .then(() => {
        isActive = false
        if (!closed) options.onVerified?.()
      })
  }
  const start = (): void => {
    if (isActive || closed) return
    isActive = true
    begin()
  }
  const schedule = planned(options, start)
  return {
    /** Starts a verification unless one is under way. */
    start,
    /** Verifies at once if a time of the schedule was missed. */
    catchUp: (): void => schedule.catchUp(),
    async close(): Promise<void> {
      closed = true
      schedule.stop()
      if (timer !== null) clearTimeout(timer)
      await task?.stop()
    },
  }
}

/** Starts the schedule. The first verification is due at its first time after the first start. */
function planned({ config, log, now }: ScrubOptions, start: () => void): Schedule {
  const { schedule: expression } = config.verify
  const { dir } = config.data
  const known = readLastVerification(dir)
  const since = known?.since ?? toIso(now())
  const none = { endedAt: null, since, damaged: [], damagedCount: 0, healed: null }
  if (known === null) noteVerification(dir, none)
  const lastSuccess = Date.parse(known?.endedAt ?? since)
  const job = { name: 'verify', expression, lastSuccess, run: start }
  return startSchedule([job], { ...config.sync, now, log: log as Logger, isSecond: true })
}

function isAnyRunning({ reads }: ScrubOptions): boolean {
  return SOURCES.some((source) => reads.live.runs.readLatestRun(source)?.state === 'running')
}

async function scrubOnce(options: ScrubOptions, verify: () => Promise<ScrubReport>): Promise<void> {
  const { config, log, thread } = options
  const first = await verify()
  thread.checkpoint() // the log could not be copied beyond what was read
  if (first === null) return
  const before = [...first.damaged, ...first.remade]
  const requests = repairRequests(first.report, config, 'schedule')
  note(options, first, before)
  if (before.length === 0) return log.info({}, 'verified: all that is stored is sound')
  const fetched = requests.length > 0 ? 'fetched' : null
  log.warn(
    { damaged: before.slice(0, NAMED) },
    damageText(before.length, first.damaged.length === 0 ? 'made' : fetched),
  )
  if (requests.length === 0) return
  for (const request of requests) await thread.request(request)
  const after = await verify()
  thread.checkpoint()
  if (after === null) return
  note(options, after, before)
  if (after.damaged.length === 0) return log.info({}, `${counted(before.length, 'damaged part')} healed`)
  log.warn({ damaged: after.damaged.slice(0, NAMED) }, damageText(after.damaged.length, null))
}

function damageText(count: number, how: 'made' | 'fetched' | null): string {
  const what = `verified: ${counted(count, 'part')} of what is stored ${count === 1 ? 'is' : 'are'} damaged`
  if (how !== null) return `${what}: ${how} again now`
  return `${what}, and nothing was fetched again: run "patchmirror doctor --data", which says what helps`
}

function note({ config, now }: ScrubOptions, { damaged }: NonNullable<ScrubReport>, before: readonly string[]): void {
  const gone = before.length - damaged.length
  const healed = gone > 0 ? `${gone} of ${counted(before.length, 'damaged part')}` : null
  noteVerified(config.data.dir, damaged, now(), healed)
}
