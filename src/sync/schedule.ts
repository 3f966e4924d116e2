import { type ScheduledTask, createTask, schedule, validate } from 'node-cron'

/** One thing to do at the times of a cron expression, each time up to `jitterSeconds` later. */
export interface Job {
  name: string
  expression: string
  run(): void
}

/** A running schedule. */
export interface Schedule {
  /** Next start by name, unix milliseconds, jitter not included; null: never. */
  nextRunAt(name: string): number | null
  stop(): Promise<void>
}

/** Whether node-cron understands an expression. */
export function isCronExpression(expression: string): boolean {
  return validate(expression)
}

/** Starts that are looked at for the longest pause: more than a week of an hourly schedule. */
const LOOKED_AT = 200

/** The longest time between two starts of an expression, milliseconds; null when it never starts twice. */
export function cronPeriod(expression: string): number | null {
  const task = createTask(expression, () => undefined)
  const starts = task.getNextRuns(LOOKED_AT).map((at) => at.getTime())
  void task.destroy()
  const pauses = starts.slice(1).map((at, n) => at - (starts[n] ?? at))
  return pauses.length === 0 ? null : Math.max(...pauses)
}

/** Time between the next two starts of an expression, milliseconds: how old a result may be before it was missed. */
function intervalOf(task: ScheduledTask): number {
  const [first, second] = task.getNextRuns(2)
  return first === undefined || second === undefined ? 0 : second.getTime() - first.getTime()
}

/**
 * Starts the jobs. The only user of node-cron. A job whose last success (`lastSuccess`, unix milliseconds, null:
 * never) is older than its interval is run at once: its time passed while the program was down.
 */
export function startSchedule(
  jobs: readonly (Job & { lastSuccess: number | null })[],
  options: { jitterSeconds: number; catchUp: boolean; now: () => number },
): Schedule {
  const tasks = new Map<string, ScheduledTask>()
  for (const job of jobs) {
    const task = schedule(job.expression, () => job.run(), {
      name: job.name,
      noOverlap: true,
      maxRandomDelay: options.jitterSeconds * 1000,
      suppressMissedWarning: true,
    })
    tasks.set(job.name, task)
    const due = job.lastSuccess === null || options.now() - job.lastSuccess > intervalOf(task)
    if (options.catchUp && due) job.run()
  }
  return {
    nextRunAt: (name) => tasks.get(name)?.getNextRun()?.getTime() ?? null,
    async stop() {
      for (const task of tasks.values()) await task.destroy()
    },
  }
}
