import type { MessagePort } from 'node:worker_threads'
import { type ErrorCode, MirrorError, messageOf } from '../core/errors.ts'
import { type RunningWorker, type WorkerOptions, startWorker } from './worker.ts'

/** The first message of a supervised worker. After `refused` the worker ends. */
export type WorkerStarted =
  | { readonly type: 'ready' }
  | { readonly type: 'refused'; readonly code: ErrorCode; readonly message: string }

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
  /** True from a worker's `ready` message to its end. */
  readonly isReady: boolean
  /** Sends a message to the worker, ready or not; dropped while none runs. */
  post(message: In): void
  /**
   * The worker has nothing to do: it is ended at `at` (unix milliseconds), unless `wake` is called before. It is replaced only
   * when `wake` is called.
   */
  rest(at: number): void
  /** Keeps the worker, or starts one if it was ended or is ending after `rest`. */
  wake(): void
  /** Sends `stop` and resolves when the worker has ended; it is not replaced. */
  stop(): Promise<void>
}

/** How a worker is supervised, and who is notified. */
interface SupervisorOptions<Out> extends WorkerOptions {
  /** Pause before a worker that ended is replaced, milliseconds; `RESTART_MS` when not given. */
  readonly restartMs?: number
  /** A worker that has not ended so many milliseconds after `stop` is terminated; never when not given. */
  readonly stopTimeoutMs?: number
  /** A failure of the first worker rejects `started` and is final; otherwise it is reported and tried again. */
  readonly mustStart?: boolean
  /** Receives every message but `ready` and `refused`. */
  readonly onMessage: (message: Out) => void
  /** A worker is ready; `isRestart`: it is not the first that was started. Called after each `wake` that started one as well. */
  readonly onReady?: (isRestart: boolean) => void
  /** A worker could not start (`wasReady` false) or an error ended it; it will be replaced. */
  readonly onFailed: (message: string, wasReady: boolean) => void
  /** A worker that was ready has ended, not by `rest`; `failure` is the message of the error that ended it. */
  readonly onEnded?: (failure: string | null) => void
}

/** Long enough that a worker that fails at once does not use up the CPU, short enough that a restart is hardly noticed. */
const RESTART_MS = 5_000

/** What is known of the worker of now. */
interface SupervisorState<In> {
  worker: RunningWorker<In | StopMessage> | null
  isReady: boolean
  stopping: boolean
  /** `woken`: it is needed again while it ends. */
  rests: 'no' | 'resting' | 'woken'
  starts: number
}

/** Starts a long-lived worker and replaces it when it ends, until `stop` is called. */
export function supervise<In, Out extends TypedMessage>(
  options: SupervisorOptions<Out>,
): Supervisor<In> {
  const first: PromiseWithResolvers<void> = Promise.withResolvers()
  const now: SupervisorState<In> = {
    ...{ worker: null, isReady: false, stopping: false, rests: 'no', starts: 0 },
  }
  const timer = createTimer() // of the restart, or of the rest
  const start = (): void => {
    now.starts += 1
    now.rests = 'no'
    now.worker = startReporting<In, Out>(options, eventsOf(options, now, { first, timer, start }))
  }
  start()
  return {
    started: first.promise,
    get isReady() {
      return now.isReady
    },
    post: (message) => now.worker?.post(message),
    rest(at) {
      const end = (): void => {
        now.isReady = false
        now.rests = 'resting'
        now.worker?.post({ type: 'stop' })
      }
      if (now.isReady && !now.stopping) timer.set(end, at - Date.now())
    },
    wake() {
      if (now.isReady) timer.clear()
      if (now.stopping || now.rests !== 'resting') return
      now.rests = 'woken'
      if (now.worker === null) start()
    },
    async stop() {
      now.stopping = true
      timer.clear()
      if (now.worker !== null)
        await stopWorker(now.worker, options.stopTimeoutMs, now.rests === 'no')
    },
  }
}

interface Restart {
  readonly first: PromiseWithResolvers<void>
  readonly timer: ReturnType<typeof createTimer>
  readonly start: () => void
}

/** Follows the worker from its start to its end, and starts the next one. */
function eventsOf<In, Out extends TypedMessage>(
  options: SupervisorOptions<Out>,
  now: SupervisorState<In>,
  { first, timer, start }: Restart,
): StartEvents {
  const { restartMs = RESTART_MS, mustStart = false } = options
  return {
    onReady() {
      now.isReady = true
      options.onReady?.(now.starts > 1)
      first.resolve()
    },
    onStartFailed(error) {
      if (now.stopping) return
      now.stopping = mustStart && now.starts === 1
      if (now.stopping) return first.reject(error)
      options.onFailed(error.message, false)
      first.resolve()
    },
    onEnd(failure) {
      const { isReady: wasReady, rests } = now
      now.worker = null
      now.isReady = false
      timer.clear()
      if ((wasReady || rests !== 'no') && failure !== null) options.onFailed(failure, true)
      if (wasReady) options.onEnded?.(failure)
      first.resolve() // stopped before it was ready
      if (now.stopping || rests === 'resting') return
      if (rests === 'woken') start()
      else timer.set(start, restartMs)
    },
  }
}

/** Returns a timer for one call at a time, which does not keep the process alive. */
function createTimer() {
  let timer: NodeJS.Timeout | undefined
  return {
    set(call: () => void, ms: number): void {
      clearTimeout(timer)
      timer = setTimeout(call, ms).unref()
    },
    clear: (): void => clearTimeout(timer),
  }
}

interface TypedMessage {
  readonly type: string
}

interface StartEvents {
  readonly onReady: () => void
  /** Called at most once, and not after `onReady`. */
  readonly onStartFailed: (error: Error) => void
  /** `failure`: the message of the error that ended the worker. */
  readonly onEnd: (failure: string | null) => void
}

/** Starts a worker and tells its first message, or its end without one, from all others. */
function startReporting<In, Out extends TypedMessage>(
  options: SupervisorOptions<Out>,
  { onReady, onStartFailed, onEnd }: StartEvents,
): RunningWorker<In | StopMessage> {
  let isSettled = false
  return startWorker<In | StopMessage, Out | WorkerStarted>(options, {
    onMessage(message) {
      if (!isStarted(message)) return options.onMessage(message)
      isSettled = true
      if (message.type === 'ready') onReady()
      else onStartFailed(new MirrorError(message.code, message.message))
    },
    onEnd(error) {
      if (!isSettled) onStartFailed(error ?? new Error('the thread ended before it was ready'))
      onEnd(error === null ? null : messageOf(error))
    },
  })
}

async function stopWorker<In>(
  worker: RunningWorker<In | StopMessage>,
  timeoutMs: number | undefined,
  mustAsk: boolean,
): Promise<void> {
  if (mustAsk) worker.post({ type: 'stop' })
  const terminate = (): void => void worker.terminate()
  const timeout = timeoutMs === undefined ? undefined : setTimeout(terminate, timeoutMs)
  await worker.ended
  clearTimeout(timeout)
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
