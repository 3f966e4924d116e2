import { type ErrorCode, MirrorError } from '../../core/errors.ts'
import { type RunningWorker, type WorkerEvents, startWorker } from '../../threads/worker.ts'
import { workerFile } from '../../threads/worker-file.ts'
import type { ReadFailure, ReadReply, ReadRequest, ReadingData } from './request.ts'

/** A thread that answers what would keep the serving thread for long. */
export interface ReadingThread {
  /**
   * Resolves with the answer; null when `isGone` reports that the client is gone. Rejects with `not_ready` when too
   * many wait, and with the thread's own error when it dies.
   */
  ask(request: ReadRequest, isGone: () => boolean): Promise<ReadReply | null>
  close(): Promise<void>
}

/** Requests that may wait: each is small, and connections are bounded too. */
const MAX_WAITING = 1000

interface Waiting {
  readonly request: ReadRequest
  readonly isGone: () => boolean
  readonly resolve: (reply: ReadReply | null) => void
  readonly reject: (error: unknown) => void
}

/**
 * Starts the thread at the first request. It gets one request at a time, so that a request whose client is gone is never
 * started, and a thread that dies loses only one request.
 */
export function createReadingThread(data: ReadingData, maxWaiting = MAX_WAITING): ReadingThread {
  const waiting: Waiting[] = []
  let worker: RunningWorker<ReadRequest> | null = null
  let current: Waiting | null = null
  const next = (): void => {
    if (current !== null) return
    for (
      current = waiting.shift() ?? null;
      current?.isGone() === true;
      current = waiting.shift() ?? null
    )
      current.resolve(null)
    if (current === null) return
    worker ??= start()
    worker.post(current.request)
  }
  const lost = (error: Error): void => {
    worker = null
    const failed = current
    current = null
    failed?.reject(error)
    next()
  }
  const start = (): RunningWorker<ReadRequest> => {
    const made = startReading(data, {
      onMessage(reply) {
        const done = current
        current = null
        done?.resolve(reply)
        next()
      },
      onEnd(error) {
        if (worker === made) lost(error ?? new Error('the reading thread ended'))
      },
    })
    return made
  }
  return {
    ask(request, isGone) {
      if (waiting.length >= maxWaiting) {
        const message = 'too many requests for lists and items wait for an answer: try again later'
        return Promise.reject(new MirrorError('not_ready', message))
      }
      return new Promise((resolve, reject) => {
        waiting.push({ request, isGone, resolve, reject })
        next()
      })
    },
    async close() {
      const ended = worker
      worker = null
      const error = new MirrorError('aborted', 'the server is closing')
      for (const { reject } of [...(current === null ? [] : [current]), ...waiting.splice(0)])
        reject(error)
      current = null
      await ended?.terminate()
    },
  }
}

function startReading(
  data: ReadingData,
  events: WorkerEvents<ReadReply>,
): RunningWorker<ReadRequest> {
  const file = workerFile('reading.worker', import.meta.url)
  return startWorker({ file, data, limits: LIMITS, unref: true }, events)
}

/** The page of a list is in memory as a whole, beside the database's cache. */
const LIMITS = { maxYoungGenerationSizeMb: 16, maxOldGenerationSizeMb: 1000 }

/** The error of a reply, as if it had been thrown here. */
export function errorOf({ code, named, message, stack }: ReadFailure): Error {
  if (named) return new MirrorError(code as ErrorCode, message) // it was one of these there
  const error = new Error(message)
  error.stack = stack
  return code === null ? error : Object.assign(error, { code })
}
