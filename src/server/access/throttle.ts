/** Account of failures by client. */
export interface Attempts {
  /** Counts one more failure. `wait`: seconds until the client is heard again, 0 while it is within the limit. */
  readonly fail: (client: string) => { readonly wait: number; readonly first: boolean }
}

/** How much is too much, and what is kept. */
interface AttemptLimits {
  readonly failures: number
  readonly windowMs: number
  /** Clients kept account of; with more, those that came first are forgotten. */
  readonly clients: number
}

/** Counts failures in windows of fixed length, each begun by a client's first failure. `now` in unix milliseconds. */
export function createAttempts(limits: AttemptLimits, now: () => number): Attempts {
  const { failures, windowMs, clients } = limits
  const windows = new Map<string, { count: number; readonly startedAt: number }>()
  const windowOf = (client: string, at: number) => {
    const known = windows.get(client)
    // A clock that went backwards must not make the wait longer than a window.
    if (known !== undefined && at >= known.startedAt && at < known.startedAt + windowMs) return known
    windows.delete(client)
    const oldest = windows.size >= clients ? windows.keys().next().value : undefined
    if (oldest !== undefined) windows.delete(oldest)
    const fresh = { count: 0, startedAt: at }
    windows.set(client, fresh)
    return fresh
  }
  return {
    fail(client) {
      const at = now()
      const window = windowOf(client, at)
      window.count++
      if (window.count <= failures) return { wait: 0, first: false }
      const wait = Math.max(1, Math.ceil((window.startedAt + windowMs - at) / 1000))
      return { wait, first: window.count === failures + 1 }
    },
  }
}
