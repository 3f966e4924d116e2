import type { MessagePort } from 'node:worker_threads'
import { type ErrorCode, MirrorError, messageOf } from '../errors.ts'
import { type RunningWorker, type WorkerOptions, startWorker } from './worker.ts'

/** The first message of a supervised worker. After `refused` the worker ends. */
export type WorkerStarted =
  { readonly type: 'ready' } | { readonly type: 'refused'; readonly code: ErrorCode; readonly message: string }

/** The message that asks a supervised worker to finish its work and to end. */
export interface StopMessage {
  readonly type: 'stop'
}

/** A long-lived worker that is replaced when it ends. */
export interface Supervisor<In> {
  /**
   * Resolves when the first worker is ready or has failed. Rejects only with `mustStart`: the first worker was refused
   * (`MirrorError` with its code) or ended; it is not replaced then.
   */
  readonly started: Promise<void>
  /** True from a worker's `ready` message to its end, or to `stop`. */
  readonly isReady: boolean
  /** Sends a message to the worker, ready or not. Dropped between the end of a worker and the next start. */
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
  /** Receives every message but `ready` and `refused`. */
  readonly onMessage: (message: Out) => void
  /** A worker is ready; `isRestart`: it is not the first that was started. */
  readonly onReady?: (isRestart: boolean) => void
  /** A worker could not start (`wasReady` false) or an error ended it; it will be replaced. */
  readonly onFailed: (message: string, wasReady: boolean) => void
  /** A worker that was ready has ended; `failure` is the message of the error that ended it. */
  readonly onEnded?: (failure: string | null) => void
}

/** Long enough that a worker that fails at once does not use up the CPU, short enough that a restart is hardly noticed. */
const RESTART_MS = 5_000

/**
 * Where a supervised worker is. Each event, and what follows:
 *
 * | state      | event            | next       | effect                                                           |
 * | ---------- | ---------------- | ---------- | ---------------------------------------------------------------- |
 * | `starting` | `ready`          | `ready`    | `started` resolves                                               |
 * | `starting` | refused or ended | `starting` | reported; after the pause a worker is started                    |
 * | `starting` | same, mustStart  | `stopped`  | the first worker only: `started` rejects, nothing is reported    |
 * | `starting` | `stop`           | `stopped`  | `stop` is sent; `started` resolves when the worker has ended     |
 * | `ready`    | ended            | `starting` | reported; after the pause a worker is started                    |
 * | `ready`    | `stop`           | `stopping` | `stop` is sent; the worker is terminated after `stopTimeoutMs`   |
 * | `stopping` | ended            | `stopped`  | reported                                                         |
 */
type State = 'starting' | 'ready' | 'stopping' | 'stopped'

/** Starts a long-lived worker and replaces it when it ends, until `stop` is called. */
export function supervise<In, Out extends TypedMessage>(options: SupervisorOptions<Out>): Supervisor<In> {
  const { restartMs = RESTART_MS, stopTimeoutMs, mustStart = false } = options
  const first: PromiseWithResolvers<void> = Promise.withResolvers()
  let state: State = 'starting'
  let worker: RunningWorker<In | StopMessage> | null = null
  let restart: NodeJS.Timeout | undefined
  let starts = 0
  const start = (): void => {
    starts += 1
    worker = startReporting<In, Out>(options, { onReady, onEnd })
  }
  const startAgain = (): void => {
    state = 'starting'
    restart = setTimeout(start, restartMs).unref()
  }
  const onReady = (): void => {
    if (state !== 'starting') return
    state = 'ready'
    options.onReady?.(starts > 1)
    first.resolve()
  }
  const onEnd = (error: Error | null): void => {
    worker = null
    if (state === 'starting') return failedToStart(error ?? new Error('the thread ended before it was ready'))
    if (state === 'stopped') return first.resolve()
    if (state === 'ready') startAgain()
    else state = 'stopped'
    reportEnd(options, error)
  }
  const failedToStart = (error: Error): void => {
    if (mustStart && starts === 1) {
      state = 'stopped'
      return first.reject(error)
    }
    startAgain()
    options.onFailed(error.message, false)
    first.resolve()
  }
  start()
  return {
    started: first.promise,
    get isReady() {
      return state === 'ready'
    },
    post: (message) => worker?.post(message),
    async stop() {
      clearTimeout(restart)
      if (state === 'ready') state = 'stopping'
      if (state === 'starting') state = 'stopped'
      if (worker === null) first.resolve()
      else await stopWorker(worker, stopTimeoutMs)
    },
  }
}

/** Reports the end of a worker that was ready. */
function reportEnd<Out>({ onFailed, onEnded }: SupervisorOptions<Out>, error: Error | null): void {
  const failure = error === null ? null : messageOf(error)
  if (failure !== null) onFailed(failure, true)
  onEnded?.(failure)
}

interface TypedMessage {
  readonly type: string
}

interface WorkerEvents {
  readonly onReady: () => void
  /** `error`: why the worker refused to start, or what ended it. */
  readonly onEnd: (error: Error | null) => void
}

/** Starts a worker and tells its first message from all others. Null where no thread can be created; its end is reported then. */
function startReporting<In, Out extends TypedMessage>(
  options: SupervisorOptions<Out>,
  { onReady, onEnd }: WorkerEvents,
): RunningWorker<In | StopMessage> | null {
  let refusal: MirrorError | null = null
  const started = { ...options, data: options.data() }
  try {
    return startWorker<In | StopMessage, Out | WorkerStarted>(started, {
      onMessage(message) {
        if (!isStarted(message)) options.onMessage(message)
        else if (message.type === 'ready') onReady()
        else refusal = new MirrorError(message.code, message.message)
      },
      onEnd: (error) => onEnd(refusal ?? error),
    })
  } catch (error) {
    setImmediate(() => onEnd(error instanceof Error ? error : new Error(String(error))))
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

function isStarted(message: { readonly type: string }): message is WorkerStarted {
  const { type } = message
  return type === 'ready' || type === 'refused'
}

/** Reports as `refused` why a supervised worker cannot work, and closes its port, which ends it. */
export function refuse(port: MessagePort, error: unknown): void {
  const code = error instanceof MirrorError ? error.code : 'internal'
  port.postMessage({ type: 'refused', code, message: messageOf(error) } satisfies WorkerStarted)
  port.close()
}

/** Opens what a supervised worker works on. Null: that threw, and the worker is refused. */
export function openOrRefuse<T>(port: MessagePort, open: () => T): T | null {
  try {
    return open()
  } catch (error) {
    refuse(port, error)
    return null
  }
}
