/**
 * Turns for work that would keep the serving thread for long: who waits goes on one at a time, each in another round of
 * the event loop, so that all such work together costs the others no more than one stretch of it at once.
 */
export interface FairQueue {
  /** Resolves when it is this one's turn. */
  next(): Promise<void>
}

/** Whoever asks first is first. */
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
