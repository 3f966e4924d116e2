import { freeBytes } from '../../../../base/free-bytes.ts'
import type { OnProgress } from '../../../../base/domain/progress.ts'
import type { SourceName } from '../../../../base/domain/sources.ts'
import type { CatalogDocumentValue } from '../../../../store/replication/rows.ts'
import type { Writes } from '../../../../store/writer.ts'
import { type Checkpointer, createCheckpointer } from './checkpoints.ts'
import type { Bundle } from '../open.ts'
import { chunksOf, eachLine } from '../rows.ts'
import { createContentProof } from './content-proof.ts'

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
