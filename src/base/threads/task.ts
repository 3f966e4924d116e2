import { parentPort, workerData } from 'node:worker_threads'
import type { BundleProgress, OnProgress } from '../domain/progress.ts'
import { type ThreadFailure, errorOf, failureOf } from './failure.ts'
import { type WorkerOptions, startWorker } from './worker.ts'

type TaskMessage =
  | { readonly type: 'progress'; readonly progress: BundleProgress }
  | { readonly type: 'done'; readonly result: unknown }
  | { readonly type: 'failed'; readonly failure: ThreadFailure }

/** A task that runs in a worker of its own; the worker ends with it. */
export interface RunningTask<R> {
  /** Rejects with the error of the work (a `MirrorError` stays one, others keep their code), or when the worker ended before the work did. */
  readonly result: Promise<R>
  /** Ends the worker without waiting for the work. */
  stop(): Promise<void>
}

/** Starts one piece of work in a worker whose entry file calls `answerTask`. */
export function startTask<R>(options: WorkerOptions, onProgress?: OnProgress): RunningTask<R> {
  const { promise, resolve, reject } = Promise.withResolvers<R>()
  const worker = startWorker<never, TaskMessage>(options, {
    onMessage(message) {
      if (message.type === 'progress') onProgress?.(message.progress)
      else if (message.type === 'done') resolve(message.result as R)
      else reject(errorOf(message.failure))
    },
    onEnd: (error) => reject(error ?? new Error('the thread ended before its work did')),
  })
  return { result: promise, stop: () => worker.terminate() }
}

/**
 * The worker's side: does the work once and reports its result or error to the thread that started it. Does nothing in a
 * module that is not a worker's entry.
 */
export function answerTask(work: (data: unknown, onProgress: OnProgress) => Promise<unknown>): void {
  const port = parentPort
  if (port === null) return
  const send = (message: TaskMessage): void => port.postMessage(message)
  const failed = (error: unknown): void => send({ type: 'failed', failure: failureOf(error) })
  const onProgress = limitRate((progress) => send({ type: 'progress', progress }))
  work(workerData, onProgress).then((result) => send({ type: 'done', result }), failed)
}

/** Shortest time between two progress messages of a phase, milliseconds. */
const PROGRESS_MS = 100

/** Passes on the first and the last progress of each phase, and of the others at most one every `PROGRESS_MS`. */
function limitRate(report: OnProgress): OnProgress {
  let phase = ''
  let next = 0
  return (progress) => {
    const now = performance.now()
    const isEdge = progress.phase !== phase || progress.done === progress.total
    if (!isEdge && now < next) return
    phase = progress.phase
    next = now + PROGRESS_MS
    report(progress)
  }
}
