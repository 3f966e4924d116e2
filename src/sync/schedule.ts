import {
  type Logger as CronLogger,
  type ScheduledTask,
  createTask,
  schedule,
  validate,
} from 'node-cron'
import { messageOf } from '../core/errors.ts'
import type { Logger } from '../core/log.ts'

/** Why a job runs: a time of its expression has come, or one was missed before the schedule was started. */
type JobCause = 'schedule' | 'start'

/** A job that runs at the times of a cron expression, each time up to `jitterSeconds` later. */
export interface Job {
  name: string
  expression: string
  run(cause: JobCause): void
}

/** A running schedule. */
export interface Schedule {
  /** Next start of a job, unix milliseconds, with its jitter; null: never. */
  nextRunAt(name: string): number | null
  /**
   * Runs the jobs whose last success (`lastSuccess`, unix milliseconds, null: never) is older than their interval, because a
   * start was missed while the program was not running; none when catching up is turned off (`sync.catchUp`).
   */
  catchUp(): void
  stop(): Promise<void>
}

/** Returns whether node-cron accepts an expression. */
export function isCronExpression(expression: string): boolean {
  return validate(expression)
}

/** Number of future starts that are compared to find the longest interval: more than a week of an hourly schedule. */
const COMPARED_STARTS = 200

/** Returns the longest interval between two starts of an expression, milliseconds; null when it never starts twice. */
export function cronPeriod(expression: string): number | null {
  const task = createTask(expression, () => undefined)
  const starts = task.getNextRuns(COMPARED_STARTS).map((at) => at.getTime())
  void task.destroy()
  const intervals = starts.slice(1).map((at, n) => at - (starts[n] ?? at))
  return intervals.length === 0 ? null : Math.max(...intervals)
}

/**
 * Returns the interval between the next two starts, milliseconds: an older last success means that a start was
 * missed.
 */
function intervalOf(task: ScheduledTask): number {
  const [first, second] = task.getNextRuns(2)
  return first === undefined || second === undefined ? 0 : second.getTime() - first.getTime()
}

/**
 * node-cron's lines, among those of the program: it would write them, in colours, to standard error.
 */
function cronLoggerOf(log: Logger): CronLogger {
  const debug = (message: string | Error): void => log.debug({}, messageOf(message))
  const error = (message: string | Error): void => log.error({}, messageOf(message))
  return { debug, info: debug, warn: debug, error }
}

/** The delay of a job after the times of its expression. */
interface Jitter {
  /** A time of the expression has come: runs the job after the delay, unless an earlier one still waits. */
  readonly begin: () => void
  /** Returns when the job starts, if `next` is the next time of its expression, unix milliseconds. */
  startAt(next: number | null): number | null
  stop(): void
}

/** Draws each delay before its time has come, so that the start of a job is known exactly. */
function createJitter(
  job: Job,
  { jitterSeconds, now, log }: { jitterSeconds: number; now: () => number; log: Logger },
): Jitter {
  const draw = (): number => Math.floor(Math.random() * jitterSeconds * 1000)
  let delay = draw()
  let waiting: { timer: NodeJS.Timeout; until: number } | null = null
  return {
    begin() {
      const run = (): void => {
        waiting = null
        try {
          job.run('schedule')
        } catch (error) {
          log.error({}, `${job.name}: it could not be started: ${messageOf(error)}`)
        }
      }
      if (waiting !== null) log.debug({}, `${job.name}: starts overlap: the one before still waits`)
      waiting ??= { timer: setTimeout(run, delay), until: now() + delay }
      delay = draw()
    },
    startAt: (next) => waiting?.until ?? (next === null ? null : next + delay),
    stop: () => clearTimeout(waiting?.timer),
  }
}

/** Starts the jobs; the only file that imports node-cron. */
export function startSchedule(
  jobs: readonly (Job & { lastSuccess: number | null })[],
  options: { jitterSeconds: number; catchUp: boolean; now: () => number; log: Logger },
): Schedule {
  const tasks = new Map<string, ScheduledTask>()
  const delays = new Map<string, Jitter>()
  for (const job of jobs) {
    const delay = createJitter(job, options)
    const task = schedule(job.expression, delay.begin, {
      name: job.name,
      noOverlap: true,
      suppressMissedWarning: true,
      logger: cronLoggerOf(options.log),
    })
    tasks.set(job.name, task)
    delays.set(job.name, delay)
  }
  return {
    catchUp() {
      for (const job of jobs) {
        const { lastSuccess } = job
        const task = tasks.get(job.name)
        if (!options.catchUp || task === undefined) continue
        if (lastSuccess === null || options.now() - lastSuccess > intervalOf(task)) job.run('start')
      }
    },
    nextRunAt: (name) =>
      delays.get(name)?.startAt(tasks.get(name)?.getNextRun()?.getTime() ?? null) ?? null,
    async stop() {
      for (const delay of delays.values()) delay.stop()
      for (const task of tasks.values()) await task.destroy()
    },
  }
}
