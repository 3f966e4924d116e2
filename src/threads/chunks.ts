import { parentPort, workerData } from 'node:worker_threads'
import { type ThreadFailure, errorOf, failureOf } from './requests.ts'
import { type WorkerOptions, startWorker } from './worker.ts'

/** Bytes of a chunk; only a chunk of one larger item has more. */
export const TRANSFER_BYTES = 1 << 18
/** Chunks that exist at most: one is filled, the others wait or are in use. */
const MOST_CHUNKS = 4

/** A chunk that can be transferred to another thread. */
export type Chunk = Uint8Array<ArrayBuffer>

/** Passes a chunk on and resolves with an empty one of `TRANSFER_BYTES`, as soon as one is free. */
export type SendChunk = (chunk: Chunk) => Promise<Chunk>

type FromProducer =
  | { readonly type: 'chunk'; readonly chunk: Chunk }
  | { readonly type: 'done' }
  | { readonly type: 'failed'; readonly failure: ThreadFailure }

/** A chunk that was used, to be filled again. */
interface ToProducer {
  readonly free: ArrayBuffer
}

/**
 * Starts a worker whose entry file calls `produceChunks`, and calls `use` with each of its chunks, valid during the call.
 * Resolves when the worker has sent all of them. Rejects with the worker's error or that of `use`, or when the worker ended
 * before its work did; the worker has ended then.
 */
export async function consumeChunks(
  options: WorkerOptions,
  use: (chunk: Chunk) => void,
): Promise<void> {
  const { promise, resolve, reject } = Promise.withResolvers<undefined>()
  let failed = false
  const fail = (error: unknown): void => {
    failed = true
    reject(error)
  }
  const worker = startWorker<ToProducer, FromProducer>(options, {
    onMessage(message) {
      if (failed) return
      if (message.type === 'done') return resolve(undefined)
      if (message.type === 'failed') return fail(errorOf(message.failure))
      try {
        use(message.chunk)
        const { buffer: free } = message.chunk
        worker.post({ free }, [free])
      } catch (error) {
        fail(error)
      }
    },
    onEnd: (error) => fail(error ?? new Error('the thread ended before its work did')),
  })
  try {
    await promise
  } finally {
    await worker.terminate()
  }
}

/**
 * The worker's side: sends the chunks of `produce`, and its error if it fails. Chunks are reused, so memory is bounded. Does
 * nothing in a module that is not a worker's entry.
 */
export function produceChunks(produce: (data: unknown, send: SendChunk) => Promise<void>): void {
  const port = parentPort
  if (port === null) return
  const send = (message: FromProducer, transfer: ArrayBuffer[] = []): void =>
    port.postMessage(message, transfer)
  const pool = createPool()
  port.on('message', ({ free }: ToProducer) => pool.put(free))
  const sendChunk: SendChunk = async (chunk) => {
    const isLarge = chunk.length > TRANSFER_BYTES
    if (isLarge) await pool.settled() // a large chunk is alone, so that several do not add up
    pool.sent()
    send({ type: 'chunk', chunk }, [chunk.buffer])
    if (isLarge) await pool.settled()
    return pool.take()
  }
  produce(workerData, sendChunk)
    .then(
      () => send({ type: 'done' }),
      (error: unknown) => send({ type: 'failed', failure: failureOf(error) }),
    )
    .finally(() => port.close())
}

/** Counts the chunks that are away, and keeps those that came back. */
function createPool() {
  const free: ArrayBuffer[] = []
  let away = 0
  let wake: (() => void) | null = null
  const until = async (isEnough: () => boolean): Promise<void> => {
    while (!isEnough()) await new Promise<void>((resolve) => (wake = resolve))
  }
  return {
    sent(): void {
      away++
    },
    put(buffer: ArrayBuffer): void {
      away--
      if (buffer.byteLength === TRANSFER_BYTES) free.push(buffer)
      wake?.()
    },
    settled: (): Promise<void> => until(() => away === 0),
    async take(): Promise<Chunk> {
      await until(() => away < MOST_CHUNKS)
      return new Uint8Array(free.pop() ?? new ArrayBuffer(TRANSFER_BYTES))
    },
  }
}
