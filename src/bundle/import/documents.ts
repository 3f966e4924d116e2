import { createHash } from 'node:crypto'
import { promisify } from 'node:util'
import { gunzip } from 'node:zlib'
import { MirrorError } from '../../core/errors.ts'
import type { OnProgress } from '../../domain/progress.ts'
import type { SourceName } from '../../domain/sources.ts'
import { CHUNK_BYTES } from '../../store/catalog/documents.ts'
import { sizeOf } from '../../store/database/gzip.ts'
import type { CatalogDocumentValue } from '../../store/replication/rows.ts'
import type { Writes } from '../../store/writer.ts'
import { type Checkpointer, createCheckpointer } from './checkpoints.ts'
import type { Bundle } from './open.ts'
import { chunksOf, eachLine } from './rows.ts'

/** A document of a bundle that is to be stored. */
interface IncomingDocument {
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

/** That the chunks of a document, inflated, are the document of that digest. */
interface ContentProof {
  /** Takes the next chunk; waits only while enough are on their way. */
  add(chunk: Buffer): Promise<void>
  /** Resolves when all chunks were what they should be; rejects with `bundle`. */
  end(): Promise<void>
}

/** Inflating goes on in other threads meanwhile; so many chunks lie in memory then, a mebibyte each. */
const MOST = 4

const inflate: (chunk: Buffer, options: object) => Promise<Buffer> = promisify(gunzip)

let onTheirWay = 0
let free: (() => void)[] = []

/** Proves a document of a bundle while its chunks are written: each but the last holds `CHUNK_BYTES`, together the key's content. */
function createContentProof(
  { key, size }: { key: string; size: number },
  chunks: number,
): ContentProof {
  const hash = createHash('sha256')
  let done: Promise<void> = Promise.resolve()
  let number = 0
  let content = 0
  const take = async (chunk: Buffer, isLast: boolean, before: Promise<void>): Promise<void> => {
    const bytes = await inflated(key, chunk)
    await before
    if (!isLast && bytes.length !== CHUNK_BYTES) throw unlike(key, size)
    content += bytes.length
    hash.update(bytes)
  }
  return {
    async add(chunk) {
      while (onTheirWay >= MOST) await new Promise<void>((resolve) => free.push(resolve))
      onTheirWay++
      done = take(chunk, ++number === chunks, done).finally(() => {
        onTheirWay--
        const waiting = free
        free = []
        for (const one of waiting) one()
      })
      done.catch(() => undefined) // told at the end
    },
    end: () => {
      const end = done.then(() => {
        if (number !== chunks || content !== size || hash.digest('hex') !== key)
          throw unlike(key, size)
      })
      end.catch(() => undefined) // told to whoever waits for it
      return end
    },
  }
}

async function inflated(key: string, chunk: Buffer): Promise<Buffer> {
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
  return new MirrorError(
    'bundle',
    `document ${key} does not have the ${size} bytes that it is named by`,
  )
}
