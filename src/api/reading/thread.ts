import { Worker } from 'node:worker_threads'
import { type ErrorCode, MirrorError } from '../../core/errors.ts'
import type { ReadFailure, ReadReply, ReadRequest, ReadingData } from './request.ts'

/** A thread that answers what would keep the serving thread for long. */
export interface ReadingThread {
  /**
   * Resolves with the answer; null when `isGone` says that nobody waits for it any more. Rejects with `not_ready` when too
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

/** The worker file beside this one: `.ts` when run from source, `.js` when built. */
function workerUrl(): URL {
  return new URL(
    import.meta.url.endsWith('.ts') ? './reading.worker.ts' : './reading.worker.js',
    import.meta.url,
  )
}

/**
 * Starts the thread at the first request. It gets one request at a time, so that what nobody waits for any more is never
 * begun, and a thread that dies takes one request with it.
 */
export function createReadingThread(data: ReadingData, maxWaiting = MAX_WAITING): ReadingThread {
  const waiting: Waiting[] = []
  let worker: Worker | null = null
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
    worker.postMessage(current.request)
  }
  const lost = (error: Error): void => {
    worker = null
    const failed = current
    current = null
    failed?.reject(error)
    next()
  }
  const start = (): Worker => {
    const made = startWorker(data, {
      onReply(reply) {
        const done = current
        current = null
        done?.resolve(reply)
        next()
      },
      onLost(error) {
        if (worker === made) lost(error)
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

interface Listener {
  onReply: (reply: ReadReply) => void
  onLost: (error: Error) => void
}

function startWorker(data: ReadingData, { onReply, onLost }: Listener): Worker {
  const worker = new Worker(workerUrl(), { workerData: data, resourceLimits: LIMITS })
  worker.unref()
  worker.on('message', onReply)
  worker.once('error', (error: unknown) => {
    onLost(error instanceof Error ? error : new Error(String(error)))
  })
  worker.once('exit', () => onLost(new Error('the reading thread ended')))
  return worker
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
