import { crc32, deflateRawSync, inflateRawSync } from 'node:zlib'
import { type Representation, JSON_TYPE, gzipAround } from './representation.ts'

/** A record as the sandbox holds it: never parsed again, kept as the raw deflate stream of its bytes. */
export interface Stored {
  id: string
  /** The text that the index shows, verbatim. */
  modified: string
  crc32: number
  size: number
  deflated: Buffer
  /** Unix milliseconds of its last change in this feed, whole seconds. */
  lastModified: number
}

/**
 * Keeps a record as its deflate stream with the checksums of its bytes; `lastModified` in unix
 * milliseconds.
 */
export function store(id: string, modified: string, bytes: Buffer, lastModified: number): Stored {
  const crc = crc32(bytes)
  const stream = deflateRawSync(bytes, { level: 6 })
  // A copy of exactly its size: zlib's own result, or one from Buffer's pool, would keep a larger block alive.
  const deflated = Buffer.allocUnsafeSlow(stream.length)
  stream.copy(deflated)
  return { id, modified, crc32: crc, size: bytes.length, deflated, lastModified }
}

/** The record's exact bytes. */
export function contentOf(record: Stored): Buffer {
  return inflateRawSync(record.deflated, { chunkSize: Math.max(64, record.size + 16) })
}

/** A record as served; HEAD and gzip need no inflating. */
export function recordRepresentation(record: Stored): Representation {
  return {
    type: JSON_TYPE,
    size: record.size,
    etag: `"${record.crc32.toString(16).padStart(8, '0')}-${record.size.toString(16)}"`,
    lastModified: record.lastModified,
    ranges: false,
    chunks: () => [contentOf(record)],
    gzip: () => gzipAround(record.deflated, record.crc32, record.size),
  }
}
