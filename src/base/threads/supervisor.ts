import type { MessagePort } from 'node:worker_threads'
import { type ErrorCode, MirrorError, messageOf } from '../errors.ts'
import { type RestMessage, createRest } from './rest.ts'
import { type RunningWorker, type WorkerOptions, startWorker } from './worker.ts'

/** The first message of a supervised worker. After `refused` the worker ends. */
export type WorkerStarted =
  { readonly type: 'ready' } | { readonly type: 'refused'; readonly code: ErrorCode; readonly message: string }

/** The message that asks a supervised worker to finish its work and to end. */
export interface StopMessage {
  readonly type: 'stop'
}

/** A long-lived worker that is replaced when it ends, and that may rest: then it runs again with the next message. */
export interface Supervisor<In> {
  /**
   * Resolves when the first worker is ready or has failed. Rejects only with `mustStart`: the first worker was refused
   * (`MirrorError` with its code) or ended; it is not replaced then.
   */
  readonly started: Promise<void>
  /** True from a worker's `ready` message to its end, or its rest. */
  readonly isReady: boolean
  /** Starts a worker that rests; does nothing otherwise. */
  wake(): void
  /**
   * Sends a message to the worker, ready or not; starts one that rests, and sends it when that is ready. Dropped between a failure and
   * the next start.
   */
  post(message: In): void
  /** Sends `stop` and resolves when the worker has ended; it is not replaced. */
  stop(): Promise<void>
}

/** How a worker is supervised, and who is notified. */
interface SupervisorOptions<Out> extends Omit<WorkerOptions, 'data'> {
  /** Returns the start data of a worker. */
  readonly data: () => unknown
  /** Pause before a worker that ended is replaced, milliseconds; `RESTART_MS` when not given. */
  readonly restartMs?: number
  /** A worker that has not ended so many milliseconds after `stop` is terminated; never when not given. */
  readonly stopTimeoutMs?: number
  /** A failure of the first worker rejects `started` and is final; otherwise it is reported and tried again. */
  readonly mustStart?: boolean
  /** Receives every message but `ready`, `refused` and `rest`. */
  readonly onMessage: (message: Out) => void
  /** A worker is ready; `isRestart`: it is not the first that was started. */
  readonly onReady?: (isRestart: boolean) => void
  /** A worker could not start (`wasReady` false) or an error ended it; it will be replaced. */
  readonly onFailed: (message: string, wasReady: boolean) => void
  /** A worker that was ready has ended, but not to rest; `failure` is the message of the error that ended it. */
  readonly onEnded?: (failure: string | null) => void
}

/** Long enough that a worker that fails at once does not use up the CPU, short enough that a restart is hardly noticed. */
const RESTART_MS = 5_000

/** How long a worker may take to end that asked for rest, milliseconds; then it is terminated. */
const REST_TIMEOUT_MS = 10_000

/** Starts a long-lived worker and replaces it when it ends, until `stop` is called. */
export function supervise<In, Out extends TypedMessage>(options: SupervisorOptions<Out>): Supervisor<In> {
  const { restartMs = RESTART_MS, stopTimeoutMs, mustStart = false } = options
  const first: PromiseWithResolvers<void> = Promise.withResolvers()
  const rest = createRest<In>()
  let worker: RunningWorker<In | StopMessage> | null = null
  let restart: NodeJS.Timeout | undefined
  let isReady = false
  let stopping = false
  let starts = 0
  const events: StartEvents = {
    onReady() {
      isReady = true
      for (const message of rest.ready()) worker?.post(message)
      options.onReady?.(starts > 1)
      first.resolve()
    },
    onStartFailed(error) {
      if (stopping) return
      stopping = mustStart && starts === 1
      if (stopping) return first.reject(error)
      options.onFailed(error.message, false)
      first.resolve()
    },
    onRest({ seen }) {
      if (worker !== null && !stopping && rest.begin(seen)) void stopWorker(worker, REST_TIMEOUT_MS)
    },
    onEnd(failure) {
      const wasReady = isReady
      const next = rest.ended(failure)
      worker = null
      isReady = false
      if (wasReady && failure !== null) options.onFailed(failure, true)
      if (wasReady && next === 'restart') options.onEnded?.(failure)
      first.resolve() // stopped before it was ready
      if (!stopping && next === 'start') start()
      if (!stopping && next === 'restart') restart = setTimeout(start, restartMs).unref()
    },
  }
  const start = (): void => {
    starts += 1
    rest.started()
    worker = startReporting<In, Out>(options, events)
  }
  const wake = (): void => (!stopping && rest.wake() ? start() : undefined)
  start()
  return {
    started: first.promise,
    get isReady() {
      return isReady && rest.isOver()
    },
    wake,
    post: (message) => (stopping || !rest.takes(message) ? worker?.post(message) : wake()),
    async stop() {
      stopping = true
      clearTimeout(restart)
      if (worker !== null) await stopWorker(worker, stopTimeoutMs)
    },
  }
}

interface TypedMessage {
  readonly type: string
}

interface StartEvents {
  readonly onReady: () => void
  readonly onRest: (message: RestMessage) => void
  /** Called at most once, and not after `onReady`. */
  readonly onStartFailed: (error: Error) => void
  /** `failure`: the message of the error that ended the worker. */
  readonly onEnd: (failure: string | null) => void
}

/** Starts a worker and tells its first message, or its end without one, from all others. Null where no thread can be created. */
function startReporting<In, Out extends TypedMessage>(
  options: SupervisorOptions<Out>,
  { onReady, onStartFailed, onRest, onEnd }: StartEvents,
): RunningWorker<In | StopMessage> | null {
  let isSettled = false
  const ended = (error: Error | null): void => {
    if (!isSettled) onStartFailed(error ?? new Error('the thread ended before it was ready'))
    onEnd(error === null ? null : messageOf(error))
  }
  const started = { ...options, data: options.data() }
  try {
    return startWorker<In | StopMessage, Out | WorkerStarted | RestMessage>(started, {
      onMessage(message) {
        if (isRest(message)) return onRest(message)
        if (!isStarted(message)) return options.onMessage(message)
        isSettled = true
        if (message.type === 'ready') onReady()
        else onStartFailed(new MirrorError(message.code, message.message))
      },
      onEnd: ended,
    })
  } catch (error) {
    setImmediate(() => ended(error instanceof Error ? error : new Error(String(error))))
    return null
  }
}

async function stopWorker<In>(worker: RunningWorker<In | StopMessage>, timeoutMs: number | undefined): Promise<void> {
  worker.post({ type: 'stop' })
  const terminate = (): void => void worker.terminate()
  const timeout = timeoutMs === undefined ? undefined : setTimeout(terminate, timeoutMs)
  await worker.ended
  clearTimeout(timeout)
}

function isRest(message: { readonly type: string }): message is RestMessage {
  return message.type === 'rest'
}

function isStarted(message: { readonly type: string }): message is WorkerStarted {
  const { type } = message
  return type === 'ready' || type === 'refused'
}

/**
 * Opens what a supervised worker works on. When that throws, reports the error as `refused`, closes the port, which ends the
 * worker, and returns null.
 */
export function openOrRefuse<T>(port: MessagePort, open: () => T): T | null {
  try {
    return open()
  } catch (error) {
    const code = error instanceof MirrorError ? error.code : 'internal'
    port.postMessage({ type: 'refused', code, message: messageOf(error) } satisfies WorkerStarted)
    port.close()
    return null
  }
}
