/**
 * What a request needs of a signal. An `AbortSignal` is one; those made here cost a tenth of it, of which a crawl of many
 * small answers needs one for each.
 */
export interface StopSignal {
  readonly aborted: boolean
  readonly reason: unknown
  addEventListener(type: 'abort', listener: () => void): void
  removeEventListener(type: 'abort', listener: () => void): void
}

/** Creates a signal and the function that aborts it; only its first call has an effect. */
export function createStop(): { signal: StopSignal; stop: (reason: unknown) => void } {
  const listeners = new Set<() => void>()
  const state = { aborted: false, reason: undefined as unknown }
  const signal: StopSignal = Object.assign(state, {
    addEventListener: (_: 'abort', listener: () => void) => void listeners.add(listener),
    removeEventListener: (_: 'abort', listener: () => void) => void listeners.delete(listener),
  })
  const stop = (reason: unknown): void => {
    if (state.aborted) return
    state.aborted = true
    state.reason = reason
    for (const listener of [...listeners]) listener()
  }
  return { signal, stop }
}

/** What is called when a signal aborts. */
const calls = new WeakMap<AbortSignal, Set<() => void>>()

/**
 * Calls a function when the signal aborts, until the returned function is called. The signal of a run has one listener for
 * all its requests.
 */
export function whenAborted(signal: AbortSignal, call: () => void): () => void {
  let all = calls.get(signal)
  if (all === undefined) {
    const own = new Set<() => void>()
    signal.addEventListener('abort', () => [...own].forEach((one) => one()), { once: true })
    calls.set(signal, own)
    all = own
  }
  const own = all
  own.add(call)
  return () => void own.delete(call)
}
