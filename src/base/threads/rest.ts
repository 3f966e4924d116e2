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
  let seen = 0
  let idleChecks = 0
  port.on('message', () => void (seen += 1))
  const check = (): void => {
    idleChecks = isIdle() ? idleChecks + 1 : 0
    if (idleChecks >= CHECKS) port.postMessage({ type: 'rest', seen } satisfies RestMessage)
  }
  setInterval(check, checkMs).unref()
}

/** What follows the end of a worker: a start at once, one after the pause for failures, or none until there is a message. */
type AfterEnd = 'start' | 'restart' | 'rest'

/**
 * Creates the supervisor's state of a worker's rest. Messages that are posted from its beginning to the next worker's `ready` wait
 * for that, also when a start fails in between.
 */
export function createRest<In>() {
  let state: 'none' | 'ending' | 'resting' | 'waking' = 'none'
  let sent = 0
  let isWanted = false
  const waiting: In[] = []
  return {
    /** Whether messages go to the worker now. */
    isOver: (): boolean => state === 'none',
    /** A worker was started, which has received nothing. */
    started: (): void => void (sent = 0),
    /** Begins a rest, unless there are messages that the worker has not received. */
    begin(seen: number): boolean {
      if (state !== 'none' || seen !== sent) return false
      state = 'ending'
      return true
    },
    /** Counts a message for the worker; true: it waits for the next one. */
    takes(message: In): boolean {
      if (state === 'none') sent += 1
      else waiting.push(message)
      return state !== 'none'
    },
    /** A worker is wanted; true: it is to be started now. */
    wake(): boolean {
      isWanted = state === 'ending'
      if (state !== 'resting') return false
      state = 'waking'
      return true
    },
    /** The worker has ended. */
    ended(failure: string | null): AfterEnd {
      if (state !== 'ending') return 'restart'
      const isNeeded = isWanted || waiting.length > 0 || failure !== null
      state = isNeeded ? 'waking' : 'resting'
      isWanted = false
      if (failure !== null) return 'restart'
      return isNeeded ? 'start' : 'rest'
    },
    /** A worker is ready: returns the messages that waited for it. */
    ready(): readonly In[] {
      state = 'none'
      sent += waiting.length
      return waiting.splice(0)
    },
  }
}
