/**
 * Cooperative scheduler for work that would block the serving thread for long: resumes at most one waiting task per
 * event-loop iteration, so that other requests are served between two of them.
 */
export interface FairQueue {
  /** Resolves when the caller may run; callers are resumed in the order of their calls. */
  next(): Promise<void>
}

/** Creates a first-in, first-out queue. */
export function createFairQueue(): FairQueue {
  const waiting: (() => void)[] = []
  let due = false
  const call = (): void => {
    waiting.shift()?.()
    due = waiting.length > 0
    if (due) setImmediate(call)
  }
  return {
    next: () =>
      new Promise((resolve) => {
        waiting.push(resolve)
        if (due) return
        due = true
        setImmediate(call)
      }),
  }
}
