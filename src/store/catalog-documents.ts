import { gunzipSync } from 'node:zlib'
import type { Db } from './database.ts'

/** Content bytes of one chunk. */
export const CHUNK_BYTES = 1_048_576

/** SQL: the digests that the links of a table's rows name. Links that cannot be read name none: they do not disable what looks at all. */
export function namedDigests(table: string, where = 'TRUE'): string {
  return `SELECT json_extract(link.value, '$.digest')
    FROM ${table}, json_each(CASE WHEN json_valid(links) THEN links ELSE '[]' END) AS link
    WHERE ${where} AND link.type = 'object' AND json_type(link.value, '$.digest') = 'text'`
}

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

/** The content of a chunk. */
export function chunkContent(bytes: Buffer): Buffer {
  return gunzipSync(bytes, { maxOutputLength: CHUNK_BYTES })
}

export type DocumentStoreReader = ReturnType<typeof createDocumentStoreReader>
