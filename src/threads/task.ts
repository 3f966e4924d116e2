import { Worker, parentPort, workerData } from 'node:worker_threads'
import { type ErrorCode, MirrorError, messageOf } from '../core/errors.ts'
import type { BundleProgress, OnProgress } from '../domain/progress.ts'

type FromTask =
  | { readonly type: 'progress'; readonly progress: BundleProgress }
  | { readonly type: 'done'; readonly result: unknown }
  | { readonly type: 'failed'; readonly code: ErrorCode | null; readonly message: string }

/** Progress is told this often at most, milliseconds, except where a phase begins or ends. */
const TELL_MS = 100

/** The file beside another module: `.ts` when run from source, `.js` when built. */
export function workerFile(name: string, url: string): URL {
  return new URL(`./${name}${url.endsWith('.ts') ? '.ts' : '.js'}`, url)
}

/**
 * Runs one piece of work in a thread of its own, with a small nursery: what passes by is garbage by the gigabyte, and a
 * large one would only make the peak of memory higher. Rejects with what the work threw; a `MirrorError` stays one.
 */
export function runTask<R>(file: URL, data: unknown, onProgress: OnProgress): Promise<R> {
  const limits = { maxYoungGenerationSizeMb: 6, maxOldGenerationSizeMb: 2000 }
  const worker = new Worker(file, { workerData: data, resourceLimits: limits })
  return new Promise((resolve, reject) => {
    worker.on('message', (message: FromTask) => {
      if (message.type === 'progress') onProgress(message.progress)
      else if (message.type === 'done') resolve(message.result as R)
      else {
        const { code, message: text } = message
        reject(code === null ? new Error(text) : new MirrorError(code, text))
      }
    })
    worker.once('error', reject)
    worker.once('exit', () => reject(new Error('the thread ended before its work did')))
  })
}

/** The other side: does the work, once, and tells its parent. Does nothing in a module that is no thread's. */
export function answerTask(
  work: (data: unknown, onProgress: OnProgress) => Promise<unknown>,
): void {
  const port = parentPort
  if (port === null) return
  const send = (message: FromTask): void => port.postMessage(message)
  const failed = (error: unknown): void => {
    const code = error instanceof MirrorError ? error.code : null
    send({ type: 'failed', code, message: messageOf(error) })
  }
  const onProgress = sparing((progress) => send({ type: 'progress', progress }))
  work(workerData, onProgress).then((result) => send({ type: 'done', result }), failed)
}

/** Tells of a beginning and an end always, and of what lies between from time to time. */
function sparing(tell: OnProgress): OnProgress {
  let phase = ''
  let next = 0
  return (progress) => {
    const now = performance.now()
    const isEdge = progress.phase !== phase || progress.done === progress.total
    if (!isEdge && now < next) return
    phase = progress.phase
    next = now + TELL_MS
    tell(progress)
  }
}
