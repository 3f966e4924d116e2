import type { MessagePort } from 'node:worker_threads'

/** The message of a worker that has nothing to do: it may be ended until the next message. It had received `seen` messages. */
export interface RestMessage {
  readonly type: 'rest'
  readonly seen: number
}

/** Interval of checks, milliseconds. */
const CHECK_MS = 10_000
/** Checks in a row that find nothing to do, before a worker rests: its next start takes a tenth of a second of processor time. */
const CHECKS = 3

/**
 * Asks the supervisor of this worker to end it until there is something to do, once `isIdle` has been true for half a minute: a
 * thread has 10 MB and more, and what its last work left. The interval ends with the worker.
 */
export function restWhenIdle(port: MessagePort, isIdle: () => boolean, checkMs = CHECK_MS): void {
  let [seen, idleChecks] = [0, 0]
  port.on('message', () => void (seen += 1))
  const check = (): void => {
    idleChecks = isIdle() ? idleChecks + 1 : 0
    if (idleChecks >= CHECKS) port.postMessage({ type: 'rest', seen } satisfies RestMessage)
  }
  setInterval(check, checkMs).unref()
}

/** Creates the supervisor's state of a worker's rest: none, about to end, or ended until the next message. */
export function createRest<In>() {
  let state: 'none' | 'ending' | 'resting' = 'none'
  let posted = 0
  let messages: In[] = []
  return {
    /** Begins a rest, unless there are messages that the worker has not seen. */
    begin(seen: number): boolean {
      if (state !== 'none' || seen !== posted) return false
      state = 'ending'
      return true
    },
    /** Counts a message; true: it waits for the worker that runs after the rest. */
    holds(message: In): boolean {
      posted += 1
      if (state !== 'none') messages.push(message)
      return state !== 'none'
    },
    hasMessages: () => messages.length > 0,
    /** The worker has ended; true: to rest. */
    ended(failure: string | null): boolean {
      state = state === 'ending' && failure === null ? 'resting' : 'none'
      posted = 0
      if (state === 'none') messages = []
      return state === 'resting'
    },
    /** Ends the rest and returns the messages for the worker that runs after it. */
    over(): readonly In[] {
      const waiting = messages
      state = 'none'
      posted = waiting.length
      messages = []
      return waiting
    },
  }
}
