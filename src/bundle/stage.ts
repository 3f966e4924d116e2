import type { CatalogDocumentValue } from '../store/carried-rows.ts'
import type { SourceName } from '../store/runs.ts'
import type { Writes } from '../store/writes.ts'
import { type Checkpointer, createCheckpointer } from './checkpointer.ts'
import type { Bundle } from './open.ts'
import type { OnProgress } from './progress.ts'
import { createContentProof } from './content-proof.ts'
import { chunksOf, eachLine } from './lines.ts'

/** A document of a bundle that is to be stored. */
export interface IncomingDocument {
  value: CatalogDocumentValue
  chunks: number[]
}

/** Bytes that share a transaction: so much is lost of a killed import, and so short others wait. */
const BATCH_BYTES = 8 * 2 ** 20
/** How long the write-ahead log gets before it is copied: as long as it may stay (`journal_size_limit`). */
const LOG_BYTES = 64 * 2 ** 20

/** The documents of a bundle that are not held as they are there; with `again`, all of them. */
export async function* eachMissing(
  bundle: Bundle,
  store: Writes,
  source: SourceName,
  again = false,
): AsyncGenerator<IncomingDocument & { held: 'none' | 'other' }> {
  for await (const line of eachLine(bundle, source, 'catalog-document')) {
    if (line.put === null) continue
    const { value } = line.put
    const held = store.compareDocument(value)
    if (held !== 'same' || again)
      yield { value, chunks: chunksOf(line.put), held: held === 'none' ? held : 'other' }
  }
}

/**
 * Stores the documents of a bundle that are not held at all, in transactions of some megabytes. They are invisible until
 * an answer names them; an import that was killed finds again what it stored. Returns how many were not held as they are
 * in the bundle.
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
  const tell = (): void => progress({ phase: 'stage', unit: 'documents', done, total })
  tell()
  try {
    for await (const { value, chunks, held } of eachMissing(bundle, store, source)) {
      if (held === 'none') await storeDocument(bundle, store, { value, chunks }, batch.add)
      done++
      tell()
    }
  } finally {
    await batch.flush() // also when the medium was pulled: what came of it need not come again
    await checkpointer.close()
  }
  return done
}

/** Writes so many bytes, once it is proven that they are to be written. */
type Put = (bytes: number, work: () => void, proven?: Promise<void>) => Promise<void>

/** Writes that wait for each other's company. */
function createBatch(
  { transaction }: Writes,
  checkpointer: Checkpointer,
): { add: Put; flush: () => Promise<void> } {
  let waiting: (() => void)[] = []
  let proofs: Promise<void>[] = []
  let bytes = 0
  const flush = async (): Promise<void> => {
    const [work, size, all] = [waiting, bytes, proofs]
    waiting = []
    proofs = []
    bytes = 0
    if (work.length === 0) return
    await Promise.all(all)
    await transaction(() => {
      for (const one of work) one()
      return Promise.resolve({ commit: true })
    })
    await checkpointer.written(size)
  }
  return {
    flush,
    async add(size, work, proven) {
      waiting.push(work)
      if (proven !== undefined) proofs.push(proven)
      bytes += size
      if (bytes >= BATCH_BYTES) await flush()
    },
  }
}

/** Writes at once, as within a transaction that is open. */
export const atOnce: Put = async (_, work, proven) => {
  await proven
  work()
}

/**
 * Cuts a document's stored bytes into its chunks and stores them; its row comes last, when their content is what its key
 * says. Throws `bundle` when it is not; with a `put` that gathers, that is when it is written.
 */
export async function storeDocument(
  bundle: Bundle,
  store: Writes,
  { value, chunks }: IncomingDocument,
  put: Put,
): Promise<void> {
  const { key, blob } = value
  const cutter = createCutter(chunks)
  const proof = createContentProof(value, chunks.length)
  let number = 0
  await put(0, () => store.clearChunks(key))
  await bundle.stream(`blobs/${blob}.gz`, async (piece) => {
    for (const bytes of cutter.cut(piece)) {
      const at = number++
      await proof.add(bytes)
      await put(bytes.length, () => store.putChunk(key, at, bytes))
    }
  })
  await put(0, () => store.putDocument(value), proof.end())
}

/** Cuts a stream of bytes into pieces of given lengths; what it gives is its own. */
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
