/**
 * Cooperative scheduler for work that would block the serving thread for long: resumes at most one waiting task per
 * event-loop iteration, so that other requests are served between two of them.
 */
export interface FairQueue {
  /**
   * Resolves when the caller may run. Addresses take turns, so that one with many tasks takes no more time than one with a
   * single task; callers of one address are resumed in the order of their calls.
   */
  next(address?: string): Promise<void>
}

/** Creates a queue in which addresses take turns. */
export function createFairQueue(): FairQueue {
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
    next: (address = '') =>
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
