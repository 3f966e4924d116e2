/**
 * Runs tasks, at most `width` at the same time. When a task throws, no further one is started, the running ones are
 * completed, and the first error is thrown.
 */
export async function runPool<T>(
  tasks: readonly T[],
  width: number,
  work: (task: T, done: number) => Promise<void>,
): Promise<void> {
  let next = 0
  let done = 0
  let failed: { error: unknown } | null = null
  const worker = async (): Promise<void> => {
    while (next < tasks.length && failed === null) {
      const task = tasks[next++] as T // below the length
      try {
        await work(task, done)
        done++
      } catch (error) {
        failed ??= { error }
      }
    }
  }
  await Promise.all(Array.from({ length: Math.min(width, tasks.length) }, worker))
  // The workers set it, which the compiler does not follow.
  const first = failed as { error: unknown } | null
  if (first !== null) throw first.error
}

/**
 * Cooperative scheduler for work that would block the serving thread for long: resumes at most one waiting task per
 * event-loop iteration, so that other requests are served between two of them.
 */
export type FairQueue = ReturnType<typeof createFairQueue>

/** Creates a queue in which addresses take turns. */
export function createFairQueue() {
  /** Callers by address; the address whose turn is next comes first. */
  const waiting = new Map<string, (() => void)[]>()
  let due = false
  const call = (): void => {
    for (const [address, callers] of waiting) {
      waiting.delete(address)
      const caller = callers.shift()
      if (callers.length > 0) waiting.set(address, callers)
      caller?.()
      break
    }
    due = waiting.size > 0
    if (due) setImmediate(call)
  }
  return {
    /**
     * Resolves when the caller may run. Addresses take turns, so that one with many tasks takes no more time than one with a
     * single task; callers of one address are resumed in the order of their calls.
     */
    next: (address = ''): Promise<void> =>
      new Promise((resolve) => {
        const callers = waiting.get(address)
        if (callers === undefined) waiting.set(address, [resolve])
        else callers.push(resolve)
        if (due) return
        due = true
        setImmediate(call)
      }),
  }
}

/** Work that can be interrupted wherever it yields; the last step has its result. */
export type Steps<Value> = Generator<undefined, Value, undefined>

/**
 * Creates what reports whether something is due again: when it was for the last time so many milliseconds ago, or never. `now`: a
 * clock in milliseconds, which may be set.
 */
export function createDue(everyMs: number, now: () => number = () => performance.now()): (name: string) => boolean {
  const last = new Map<string, number>()
  return (name) => {
    const at = now()
    if (Math.abs(at - (last.get(name) ?? -Infinity)) < everyMs) return false
    last.set(name, at)
    return true
  }
}

/** Returns the result of `work`, or what `late` returns or throws when that takes longer; the work goes on then. */
export async function within<T>(work: Promise<T>, ms: number, late: () => T): Promise<T> {
  const { promise, resolve } = Promise.withResolvers<undefined>()
  const timer = setTimeout(() => resolve(undefined), ms)
  try {
    return await Promise.race([work, promise.then(late)])
  } finally {
    clearTimeout(timer)
  }
}
