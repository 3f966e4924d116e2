import { type ScheduledTask, schedule, validate } from 'node-cron'

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
