import { gunzipSync } from 'node:zlib'
import { freeBytes } from '../../../../../base/free-bytes.ts'
import { contentOf, sizeOf } from '../../../../../store/database/gzip.ts'
import type { OsvReader } from '../../../../../store/osv/reads.ts'

/** A stored record with its content. */
export interface ReadRecord {
  readonly id: string
  readonly sha256: Buffer
  /** The index's `modified`. */
  readonly stamp: string
  /** A gzip member. */
  readonly body: Buffer
  /** The content; valid until the next batch. */
  readonly content: Buffer
}

/** Bytes of content that are inflated at once, and records, unless a single one has more. */
const BATCH = { bytes: 1 << 19, records: 256 }

type StoredRow = Omit<ReadRecord, 'content'> & { readonly size: number }

/** Reads all records in the order of their ids, in batches. Throws for one whose bytes are lost or damaged. */
export function* eachBatch(reads: Pick<OsvReader, 'eachSum'>): Generator<ReadRecord[]> {
  let batch: StoredRow[] = []
  let bytes = 0
  for (const [id, , size, sha256, body, stamp] of reads.eachSum()) {
    if (body === null) throw new Error(`the bytes of record ${id} are lost`)
    if (batch.length >= BATCH.records || (batch.length > 0 && bytes + size > BATCH.bytes)) {
      yield* inflated(batch, bytes)
      batch = []
      bytes = 0
    }
    batch.push({ id, sha256, stamp, body, size })
    bytes += size
  }
  if (batch.length > 0) yield* inflated(batch, bytes)
}

/** Yields the records with their contents, and frees these after it. The members are inflated together, which checks the CRC-32 and the size of each; one by one where that fails. */
function* inflated(batch: readonly StoredRow[], bytes: number): Generator<ReadRecord[]> {
  const joined = batch.every(({ body, size }) => sizeOf(body) === size) ? joint(batch, bytes) : null
  let at = 0
  yield batch.map((row) => {
    const { body, size } = row
    const content = joined?.subarray(at, at + size) ?? contentOf(body, size)
    at += size
    return { ...row, content }
  })
  if (joined !== null) freeBytes(joined)
}

function joint(batch: readonly StoredRow[], bytes: number): Buffer | null {
  const members = Buffer.concat(batch.map(({ body }) => body))
  try {
    const content = gunzipSync(members, { chunkSize: bytes + 64, maxOutputLength: bytes + 64 })
    return content.length === bytes ? content : null
  } catch {
    return null // the one that is damaged is named when it is inflated alone
  } finally {
    freeBytes(members)
  }
}
