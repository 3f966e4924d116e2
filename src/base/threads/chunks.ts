import { parentPort, workerData } from 'node:worker_threads'
import { type ThreadFailure, errorOf, failureOf } from './failure.ts'
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

/** The task to begin with, or a chunk that was used, to be filled again. */
type ToProducer =
  { readonly type: 'begin'; readonly task: unknown } | { readonly type: 'free'; readonly free: ArrayBuffer }

/** A worker that has been started and waits for its task. */
export interface ChunkThread {
  /**
   * To be called once: sends the task, moving the memory in `transfer`, and calls `use` with each chunk of the worker, valid during the call. Resolves when the worker has sent all
   * of them. Rejects with the worker's error or that of `use`, or when the worker ended before its work did; the worker has
   * ended then.
   */
  consume(task: unknown, use: (chunk: Chunk) => void, transfer?: readonly ArrayBuffer[]): Promise<void>
  /** Ends the worker, whatever it does. */
  stop(): Promise<void>
}

/**
 * Starts a worker whose entry file calls `produceChunks`, before its task is known: starting a thread and loading its modules
 * takes a tenth of a second. `consume` or `stop` must be called.
 */
export function startChunks(options: WorkerOptions): ChunkThread {
  const arrived = createArrivals()
  const worker = startWorker<ToProducer, FromProducer>(options, {
    onMessage(message) {
      if (message.type === 'chunk') arrived.add(message.chunk)
      else if (message.type === 'done') arrived.end(null)
      else arrived.end(errorOf(message.failure))
    },
    onEnd: (error) => arrived.end(error ?? new Error('the thread ended before its work did')),
  })
  return {
    async consume(task, use, transfer = []) {
      try {
        worker.post({ type: 'begin', task }, transfer)
        for (let chunk = await arrived.next(); chunk !== null; chunk = await arrived.next()) {
          use(chunk)
          worker.post({ type: 'free', free: chunk.buffer }, [chunk.buffer])
        }
      } finally {
        await worker.terminate()
      }
    },
    stop: () => worker.terminate(),
  }
}

/** Keeps what has arrived until it is taken. What ends it first counts: a worker also ends after its work. */
function createArrivals() {
  const chunks: Chunk[] = []
  let ended: { readonly error: Error | null } | null = null
  let wake: () => void = () => undefined
  return {
    add(chunk: Chunk): void {
      chunks.push(chunk)
      wake()
    },
    end(error: Error | null): void {
      ended ??= { error }
      wake()
    },
    next: async (): Promise<Chunk | null> => {
      for (;;) {
        const chunk = chunks.shift()
        if (chunk !== undefined) return chunk
        if (ended !== null && ended.error !== null) throw ended.error
        if (ended !== null) return null
        await new Promise<void>((resolve) => (wake = resolve))
      }
    },
  }
}

/** Does the same with a worker that needs nothing but its data. */
export function consumeChunks(options: WorkerOptions, use: (chunk: Chunk) => void): Promise<void> {
  return startChunks(options).consume(null, use)
}

/** Makes chunks of a worker's data, and of its task once that is known, and sends them. */
type Produce = (data: unknown, send: SendChunk, task: Promise<unknown>) => Promise<void>

/**
 * The worker's side: sends the chunks of `produce`, and its error if it fails. Chunks are reused, so memory is bounded. Does
 * nothing in a module that is not a worker's entry.
 */
export function produceChunks(produce: Produce): void {
  const port = parentPort
  if (port === null) return
  const send = (message: FromProducer, transfer: ArrayBuffer[] = []): void => port.postMessage(message, transfer)
  const pool = createPool()
  const begun = Promise.withResolvers<unknown>()
  port.on('message', (message: ToProducer) => {
    if (message.type === 'begin') begun.resolve(message.task)
    else pool.put(message.free)
  })
  const sendChunk: SendChunk = async (chunk) => {
    const isLarge = chunk.length > TRANSFER_BYTES
    if (isLarge) await pool.settled() // a large chunk is alone, so that several do not add up
    pool.sent()
    send({ type: 'chunk', chunk }, [chunk.buffer])
    if (isLarge) await pool.settled()
    return pool.take()
  }
  produce(workerData, sendChunk, begun.promise)
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
