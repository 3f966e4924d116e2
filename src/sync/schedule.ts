import {
  type Logger as CronLogger,
  type ScheduledTask,
  createTask,
  schedule,
  validate,
} from 'node-cron'
import { messageOf } from '../core/errors.ts'
import type { Logger } from '../core/log.ts'

/** A job that runs at the times of a cron expression, each time up to `jitterSeconds` later. */
export interface Job {
  name: string
  expression: string
  run(): void
}

/** A running schedule. */
export interface Schedule {
  /** Next start of a job, unix milliseconds, without jitter; null: never. */
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
 * node-cron's lines, among those of the program: it would write them, in colours, to standard error. Its warning of an
 * overlap says only that a start came while the one before was still waiting out its jitter.
 */
function cronLoggerOf(log: Logger): CronLogger {
  const debug = (message: string | Error): void => log.debug({}, messageOf(message))
  const error = (message: string | Error): void => log.error({}, messageOf(message))
  return { debug, info: debug, warn: debug, error }
}

/** Starts the jobs; the only file that imports node-cron. */
export function startSchedule(
  jobs: readonly (Job & { lastSuccess: number | null })[],
  options: { jitterSeconds: number; catchUp: boolean; now: () => number; log: Logger },
): Schedule {
  const tasks = new Map<string, ScheduledTask>()
  for (const job of jobs) {
    const task = schedule(job.expression, () => job.run(), {
      name: job.name,
      noOverlap: true,
      maxRandomDelay: options.jitterSeconds * 1000,
      suppressMissedWarning: true,
      logger: cronLoggerOf(options.log),
    })
    tasks.set(job.name, task)
  }
  return {
    catchUp() {
      for (const job of jobs) {
        const { lastSuccess } = job
        const task = tasks.get(job.name)
        if (!options.catchUp || task === undefined) continue
        if (lastSuccess === null || options.now() - lastSuccess > intervalOf(task)) job.run()
      }
    },
    nextRunAt: (name) => tasks.get(name)?.getNextRun()?.getTime() ?? null,
    async stop() {
      for (const task of tasks.values()) await task.destroy()
    },
  }
}
