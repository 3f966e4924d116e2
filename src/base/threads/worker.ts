import { type ResourceLimits, type Transferable, Worker } from 'node:worker_threads'
import { prepareLoadLock, terminateSafely } from './load-lock.ts'

/** What a worker thread is started with. */
export interface WorkerOptions {
  /** The worker's entry file, from `workerFile`. */
  readonly file: URL
  /** The worker's `workerData`; must survive a structured clone. */
  readonly data: unknown
  /** Limits of the worker's heap; Node's defaults when not given. */
  readonly limits?: ResourceLimits
  /** The process may end while this worker runs. */
  readonly unref?: boolean
}

/** What a worker reports to the thread that started it. */
interface WorkerEvents<Out> {
  readonly onMessage: (message: Out) => void
  /** The worker has ended; `error` is the error that ended it, null when it ended by itself or was terminated. Called once. */
  readonly onEnd: (error: Error | null) => void
}

/** A running worker thread. */
export interface RunningWorker<In> {
  /** Sends a message; it is queued until the worker listens, and dropped after its end. */
  post(message: In, transfer?: readonly Transferable[]): void
  /** Resolves after `onEnd`. */
  readonly ended: Promise<void>
  /** Ends the worker without waiting for its work. */
  terminate(): Promise<void>
}

/** Starts a worker thread with typed messages in both directions. */
export function startWorker<In, Out>(
  { file, data, limits, unref = false }: WorkerOptions,
  { onMessage, onEnd }: WorkerEvents<Out>,
): RunningWorker<In> {
  prepareLoadLock()
  const worker = new Worker(file, { workerData: data, ...(limits && { resourceLimits: limits }) })
  if (unref) worker.unref()
  let failure: Error | null = null
  worker.on('message', onMessage)
  worker.on('error', (error: unknown) => {
    failure = error instanceof Error ? error : new Error(String(error))
  })
  const ended = new Promise<void>((resolve) => {
    worker.once('exit', () => {
      onEnd(failure)
      resolve()
    })
  })
  return {
    ended,
    post: (message, transfer = []) => worker.postMessage(message, transfer),
    terminate: () => terminateSafely(worker),
  }
}
