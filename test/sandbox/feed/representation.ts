import { createHash } from 'node:crypto'
import { gzipSync, crc32, deflateRawSync, inflateRawSync } from 'node:zlib'

/** What one address serves at one time: bytes, validators, and its gzip form when it has one. */
export interface Representation {
  type: string
  size: number
  /** A strong entity tag, quotes included. */
  etag: string
  /** Unix time in milliseconds, whole seconds. */
  lastModified: number
  /** Whether byte ranges are offered. */
  ranges: boolean
  /** What else its answers carry, a Link for example. */
  headers?: Record<string, string>
  chunks: () => readonly Buffer[]
  /** The same bytes gzipped; absent where no content coding is offered. */
  gzip?: () => Buffer
}

/** Content types of what the service gives out. */
export const JSON_TYPE = 'application/json'
const ZIP_TYPE = 'application/zip'

/** A JSON document as a representation; its gzip form is made once, when first asked for. */
export function jsonRepresentation(bytes: Buffer, lastModified: number): Representation {
  let zipped: Buffer | undefined
  return {
    type: JSON_TYPE,
    size: bytes.length,
    etag: etagOf([bytes]),
    lastModified,
    ranges: false,
    chunks: () => [bytes],
    gzip: () => (zipped ??= gzipSync(bytes)),
  }
}

/** An archive as it is served: ranges yes, gzip no. */
export function zipRepresentation(chunks: readonly Buffer[], lastModified: number): Representation {
  return {
    type: ZIP_TYPE,
    size: chunks.reduce((sum, chunk) => sum + chunk.length, 0),
    etag: etagOf(chunks),
    lastModified,
    ranges: true,
    chunks: () => chunks,
  }
}

/** The gzip file around a raw deflate stream, without compressing again. */
function gzipAround(deflated: Buffer, crc: number, size: number): Buffer {
  const trailer = Buffer.alloc(8)
  trailer.writeUInt32LE(crc, 0)
  trailer.writeUInt32LE(size % 0x1_0000_0000, 4)
  return Buffer.concat([GZIP_HEADER, deflated, trailer])
}

const GZIP_HEADER = Buffer.from([0x1f, 0x8b, 8, 0, 0, 0, 0, 0, 0, 3])

/** The chunks' bytes from `start` to `end` (exclusive), without copying. */
export function* slice(chunks: readonly Buffer[], start: number, end: number): Generator<Buffer> {
  let at = 0
  for (const chunk of chunks) {
    if (at >= end) return
    if (at + chunk.length > start) {
      yield chunk.subarray(Math.max(0, start - at), Math.min(chunk.length, end - at))
    }
    at += chunk.length
  }
}

/** An entity tag that follows from the content: MD5 is enough, because no attacker is involved. */
export function etagOf(chunks: readonly Buffer[]): string {
  const hash = createHash('md5')
  for (const chunk of chunks) hash.update(chunk)
  return `"${hash.digest('hex')}"`
}

/** A stored record: never parsed again, kept as the raw deflate stream of its bytes. */
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
export function decodedContent(record: Stored): Buffer {
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
    chunks: () => [decodedContent(record)],
    gzip: () => gzipAround(record.deflated, record.crc32, record.size),
  }
}
