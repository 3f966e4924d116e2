import { type Hash, createHash } from 'node:crypto'
import { gunzipSync, gzipSync } from 'node:zlib'
import type { Db } from './database.ts'

/** Content bytes of one chunk. */
export const CHUNK_BYTES = 1_048_576

/** A document as it is held. */
export interface CatalogDocument {
  digest: string
  size: number
  /** Bytes of it as gzip. */
  stored: number
  type: string
  /** Unix seconds. */
  changed: number
}

/** Reads of documents; usable on any connection. One chunk is in memory at a time. */
export function createDocumentStoreReader(db: Db) {
  const info = db.prepare<[string], CatalogDocument>(
    'SELECT digest, size, stored, type, changed FROM catalog_document WHERE digest = ?',
  )
  const chunk = db
    .prepare<[string, number], Buffer>(
      'SELECT bytes FROM catalog_chunk WHERE digest = ? AND number = ?',
    )
    .pluck()
  return {
    readCatalogDocument: (digest: string): CatalogDocument | null => info.get(digest) ?? null,
    /** A chunk as it is stored, a gzip member; null when there is none. */
    readChunk: (digest: string, number: number): Buffer | null => chunk.get(digest, number) ?? null,
  }
}

/** A document on its way in. Only `end`, `abort` and a `write` that returns true touch the database. */
export interface DocumentSink {
  /** Takes bytes; true when a chunk is full and `flush` must be called before more is written. */
  write(bytes: Buffer): boolean
  /** Puts full chunks away. */
  flush(): void
  /** Keeps what was written, unless it is held already. Returns its digest, hex, and its size. */
  end(type: string, changed: number): { digest: string; size: number }
  /** Forgets what was written. */
  abort(): void
}

/**
 * Writes of documents. A sink gathers chunks in a temporary table, so that a document of any size needs a chunk of
 * memory; `end` is one transaction of its own, and what it writes is nobody's until an answer names its digest.
 */
export function createDocumentStoreWriter(db: Db) {
  db.exec(
    `CREATE TEMP TABLE IF NOT EXISTS incoming_chunk (sink INTEGER, number INTEGER, bytes BLOB);
     CREATE INDEX IF NOT EXISTS temp.incoming_place ON incoming_chunk (sink, number)`,
  )
  const put = db.prepare('INSERT INTO incoming_chunk VALUES (?, ?, ?)')
  const drop = db.prepare('DELETE FROM incoming_chunk WHERE sink = ?')
  const adopt = db.prepare(
    'INSERT INTO catalog_chunk SELECT ?, number, bytes FROM incoming_chunk WHERE sink = ? ORDER BY number',
  )
  const stored = db
    .prepare<[number], number>('SELECT sum(length(bytes)) FROM incoming_chunk WHERE sink = ?')
    .pluck()
  const insert = db.prepare('INSERT INTO catalog_document VALUES (?, ?, ?, ?, ?)')
  const sweepChunks = db.prepare(
    'DELETE FROM catalog_chunk WHERE digest NOT IN (SELECT digest FROM catalog_document)',
  )
  const sweep = db.prepare(
    `DELETE FROM catalog_document WHERE digest NOT IN (
       SELECT json_extract(link.value, '$.digest') FROM catalog_answer, json_each(links) AS link
       UNION SELECT json_extract(link.value, '$.digest') FROM catalog_fetched, json_each(links) AS link)`,
  )
  const reader = createDocumentStoreReader(db)
  let sinks = 0
  return {
    ...reader,
    openDocument(): DocumentSink {
      const sink = ++sinks
      const hash: Hash = createHash('sha256')
      let pending: Buffer[] = []
      let held = 0
      let size = 0
      let number = 0
      const keep = (bytes: Buffer): void => {
        put.run(sink, number++, gzipSync(bytes, { level: 6 }))
      }
      return {
        write(bytes) {
          hash.update(bytes)
          size += bytes.length
          pending.push(Buffer.from(bytes)) // the caller's buffer may be a view of the network's
          held += bytes.length
          return held >= CHUNK_BYTES
        },
        flush() {
          const all = Buffer.concat(pending)
          let at = 0
          for (; all.length - at >= CHUNK_BYTES; at += CHUNK_BYTES)
            keep(all.subarray(at, at + CHUNK_BYTES))
          pending = [all.subarray(at)]
          held = all.length - at
        },
        end(type, changed) {
          if (held > 0 || number === 0) keep(Buffer.concat(pending))
          const digest = hash.digest('hex')
          if (reader.readCatalogDocument(digest) === null) {
            adopt.run(digest, sink)
            insert.run(digest, size, Number(stored.get(sink)), type, changed)
          }
          drop.run(sink)
          return { digest, size }
        },
        abort: () => {
          drop.run(sink)
        },
      }
    },
    /** Removes documents that no answer names any more; call where nothing is being fetched. Returns how many. */
    sweepDocuments(): number {
      const { changes } = sweep.run()
      if (changes > 0) sweepChunks.run()
      return changes
    },
  }
}

/** The content of a chunk. */
export function chunkContent(bytes: Buffer): Buffer {
  return gunzipSync(bytes, { maxOutputLength: CHUNK_BYTES })
}

export type DocumentStoreReader = ReturnType<typeof createDocumentStoreReader>
export type DocumentStoreWriter = ReturnType<typeof createDocumentStoreWriter>
