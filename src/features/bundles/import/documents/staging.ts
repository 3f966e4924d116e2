import { createHash } from 'node:crypto'
import { promisify } from 'node:util'
import { gunzip } from 'node:zlib'
import { freeBytes } from '../../../../base/free-bytes.ts'
import type { OnProgress } from '../../../../base/domain/progress.ts'
import type { SourceName } from '../../../../base/domain/sources.ts'
import type { CatalogDocumentValue } from '../../../../store/replication/rows.ts'
import type { Writes } from '../../../../store/writes.ts'
import { startWorker } from '../../../../base/threads/worker.ts'
import { workerFile } from '../../../../base/threads/worker-file.ts'
import { MirrorError } from '../../../../base/errors.ts'
import { CHUNK_BYTES } from '../../../../store/catalog/documents.ts'
import { sizeOf } from '../../../../store/database/gzip.ts'
import type { Bundle } from '../open.ts'
import { chunksOf, eachLine } from '../rows.ts'
import type { ToCheckpointer } from './checkpoints.worker.ts'

/** A document of a bundle that must be stored. */
interface IncomingDocument {
  value: CatalogDocumentValue
  chunks: number[]
}

/** Bytes per transaction: a killed import loses at most as much, and other writers wait only briefly. */
const BATCH_BYTES = 8 * 2 ** 20
/** Size of the write-ahead log at which it is copied, bytes: the size that it may keep (`journal_size_limit`). */
const LOG_BYTES = 64 * 2 ** 20

/** Yields the documents of a bundle that differ from the stored ones; with `again`, all of them. */
export async function* eachMissing(
  bundle: Bundle,
  store: Writes,
  source: SourceName,
  again = false,
): AsyncGenerator<IncomingDocument & { stored: 'none' | 'other' }> {
  for await (const line of eachLine(bundle, source, 'catalog-document')) {
    if (line.put === null) continue
    const { value } = line.put
    const stored = store.carried.compareDocument(value)
    if (stored !== 'same' || again)
      yield { value, chunks: chunksOf(line.put), stored: stored === 'none' ? stored : 'other' }
  }
}

/**
 * Stores the documents of a bundle that are not stored at all, in transactions of some megabytes. They are unreferenced
 * until an answer links to them; an import after a killed one finds them again. Returns the number of documents that
 * differ from the stored ones.
 */
export async function stageDocuments(
  bundle: Bundle,
  store: Writes,
  source: SourceName,
  total: number,
  dataDir: string,
  progress: OnProgress,
): Promise<number> {
  const checkpointer = createCheckpointer(store, dataDir, LOG_BYTES)
  const batch = createBatch(store, checkpointer)
  let done = 0
  const report = (): void => progress({ phase: 'stage', unit: 'documents', done, total })
  report()
  try {
    for await (const { value, chunks, stored } of eachMissing(bundle, store, source)) {
      if (stored === 'none') for await (const one of documentWrites(bundle, { value, chunks })) await batch.add(one)
      done++
      report()
    }
  } finally {
    await batch.flush() // also after a read error: what was read need not be read again
    await checkpointer.close()
  }
  return done
}

/** A write of a document: its former chunks, a chunk, or its row; `proven` rejects with `bundle` if the content differs. */
type DocumentWrite =
  | { readonly kind: 'clear'; readonly key: string }
  | {
      readonly kind: 'chunk'
      readonly key: string
      readonly number: number
      readonly bytes: Buffer
      /** Resolves when its content was inflated, or could not be. */
      readonly inflated: Promise<void>
    }
  | { readonly kind: 'row'; readonly value: CatalogDocumentValue; readonly proven: Promise<void> }

/** Splits a document's stored bytes into its chunks; yields the writes that store it, in order. */
async function* documentWrites(
  { streamContent }: Bundle,
  { value, chunks }: IncomingDocument,
): AsyncGenerator<DocumentWrite> {
  const { key, blob } = value
  const cutter = createCutter(chunks)
  const proof = createContentProof(value, chunks.length)
  let number = 0
  yield { kind: 'clear', key }
  for await (const piece of streamContent(`blobs/${blob}.gz`))
    for (const bytes of cutter.cut(piece)) {
      const { inflated } = await proof.add(bytes)
      yield { kind: 'chunk', key, number: number++, bytes, inflated }
    }
  yield { kind: 'row', value, proven: proof.end() }
}

function write({ carried }: Writes, one: DocumentWrite): void {
  if (one.kind === 'clear') carried.clearChunks(one.key)
  else if (one.kind === 'chunk') carried.putChunk(one.key, one.number, one.bytes)
  else carried.putDocument(one.value)
}

/** Stores a document within the open transaction. Throws `bundle` if its content does not match its key. */
export async function writeDocument(bundle: Bundle, store: Writes, document: IncomingDocument): Promise<void> {
  for await (const one of documentWrites(bundle, document)) {
    if (one.kind === 'row') await one.proven
    write(store, one)
  }
}

/** Reads a document of a bundle and stores nothing. Throws `bundle` if its content does not match its key. */
export async function proveDocument(bundle: Bundle, document: IncomingDocument): Promise<void> {
  for await (const one of documentWrites(bundle, document)) {
    if (one.kind === 'row') await one.proven
    else if (one.kind === 'chunk') void one.inflated.then(() => freeBytes(one.bytes))
  }
}

/** Gathers writes and stores them in transactions of some megabytes. */
interface Batch {
  /** Throws `bundle` when the batch is written and the content of a document does not match its key. */
  add(one: DocumentWrite): Promise<void>
  flush(): Promise<void>
}

/** Frees the chunks of writes that are stored, when their contents were inflated. */
async function free(writes: readonly DocumentWrite[]): Promise<void> {
  for (const one of writes)
    if (one.kind === 'chunk') {
      await one.inflated
      freeBytes(one.bytes)
    }
}

function createBatch(store: Writes, checkpointer: Checkpointer): Batch {
  let waiting: DocumentWrite[] = []
  let bytes = 0
  const flush = async (): Promise<void> => {
    const writes = waiting
    const size = bytes
    waiting = []
    bytes = 0
    if (writes.length === 0) return
    await Promise.all(writes.flatMap((one) => (one.kind === 'row' ? [one.proven] : [])))
    await store.transaction(() => {
      for (const one of writes) write(store, one)
      return Promise.resolve({ commit: true })
    })
    await free(writes)
    await checkpointer.written(size)
  }
  return {
    flush,
    async add(one) {
      waiting.push(one)
      if (one.kind === 'chunk') bytes += one.bytes.length
      if (bytes >= BATCH_BYTES) await flush()
    },
  }
}

/** Splits a stream of bytes into pieces of given lengths; each piece has its own buffer. */
function createCutter(lengths: readonly number[]): { cut(piece: Buffer): Generator<Buffer> } {
  let at = 0
  let filled = 0
  let room = Buffer.allocUnsafe(lengths[0] ?? 0)
  return {
    *cut(piece) {
      for (let from = 0; from < piece.length && at < lengths.length;) {
        const taken = piece.copy(room, filled, from)
        from += taken
        filled += taken
        if (filled < room.length) return
        yield room
        room = Buffer.allocUnsafe(lengths[++at] ?? 0)
        filled = 0
      }
    },
  }
}

/** Keeps the write-ahead log short while gigabytes are written. */
type Checkpointer = ReturnType<typeof createCheckpointer>

/**
 * Copies the log into the database in a thread of its own, each time `every` bytes were committed: the next bytes are
 * written meanwhile, where a commit that copies would wait for the disk. The database is always consistent, as with any
 * checkpoint. The thread starts at the first copy; if it ends, commits copy the log again.
 */
function createCheckpointer(store: Writes, dataDir: string, every: number) {
  let thread: CopyingThread | null = null
  let copying: Promise<void> | null = null
  let waiting = 0
  return {
    /** Adds committed bytes; waits if the log would get much longer than `every`. */
    async written(bytes: number): Promise<void> {
      waiting += bytes
      if (waiting < every) return
      waiting = 0
      await copying
      thread ??= startThread(store, dataDir)
      copying = thread.copy()
    },
    /** Ends it; commits copy the log again. */
    async close(): Promise<void> {
      await copying
      await thread?.stop()
    },
  }
}

interface CopyingThread {
  /** Resolves when the copy is done, or the thread has ended. */
  copy(): Promise<void>
  stop(): Promise<void>
}

function startThread(store: Writes, dataDir: string): CopyingThread {
  let copied: (() => void) | null = null
  const worker = startWorker<ToCheckpointer, 'copied'>(
    { file: workerFile('checkpoints.worker', import.meta.url), data: { dataDir } },
    { onMessage: () => copied?.(), onEnd: () => store.copyLogs(true) },
  )
  store.copyLogs(false)
  return {
    copy() {
      const copying = new Promise<void>((resolve) => (copied = resolve))
      worker.post('copy')
      return Promise.race([worker.ended, copying])
    },
    stop() {
      worker.post('stop')
      return worker.ended
    },
  }
}

/** Proves that the inflated chunks of a document have its digest. */
interface ContentProof {
  /** Adds the next chunk; waits while too many are being inflated. `inflated` resolves when nothing reads it any more. */
  add(chunk: Buffer): Promise<{ inflated: Promise<void> }>
  /** Resolves if all chunks are correct; rejects with `bundle`. */
  end(): Promise<void>
}

/** Chunks inflated concurrently in the thread pool, a mebibyte of memory each. */
const MOST = 4

const inflate: (chunk: Buffer, options: object) => Promise<Buffer> = promisify(gunzip)

let active = 0
let waitingForRoom: (() => void)[] = []

/**
 * Proves a document of a bundle while its chunks are written: each except the last has `CHUNK_BYTES`, all together the
 * key's content.
 */
function createContentProof({ key, size }: { key: string; size: number }, chunks: number): ContentProof {
  const hash = createHash('sha256')
  let done: Promise<void> = Promise.resolve()
  let number = 0
  let content = 0
  const take = async (inflating: Promise<Buffer>, isLast: boolean, before: Promise<void>): Promise<void> => {
    const bytes = await inflating
    await before
    if (!isLast && bytes.length !== CHUNK_BYTES) throw unlike(key, size)
    content += bytes.length
    hash.update(bytes)
    freeBytes(bytes)
  }
  return {
    async add(chunk) {
      while (active >= MOST) await new Promise<void>((resolve) => waitingForRoom.push(resolve))
      active++
      const inflating = contentOfChunk(key, chunk)
      done = take(inflating, ++number === chunks, done).finally(() => {
        active--
        const waiting = waitingForRoom
        waitingForRoom = []
        for (const one of waiting) one()
      })
      done.catch(() => undefined) // reported by `end`
      const ended = (): void => undefined
      return { inflated: inflating.then(ended, ended) }
    },
    end: () => {
      const end = done.then(() => {
        if (number !== chunks || content !== size || hash.digest('hex') !== key) throw unlike(key, size)
      })
      end.catch(() => undefined) // reported to the caller
      return end
    },
  }
}

async function contentOfChunk(key: string, chunk: Buffer): Promise<Buffer> {
  const size = sizeOf(chunk)
  const fault = `document ${key} is not in chunks of gzip`
  if (chunk.readUInt16BE(0) !== 0x1f8b || size > CHUNK_BYTES) throw new MirrorError('bundle', fault)
  try {
    const limits = { chunkSize: Math.max(64, size + 16), maxOutputLength: size + 16 }
    const content = await inflate(chunk, limits)
    if (content.length === size) return content
  } catch (error) {
    throw new MirrorError('bundle', fault, { cause: error })
  }
  throw new MirrorError('bundle', fault)
}

function unlike(key: string, size: number): MirrorError {
  return new MirrorError('bundle', `document ${key} does not have the ${size} bytes of its digest`)
}
