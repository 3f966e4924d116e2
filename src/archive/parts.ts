import { type Hash, createHash } from 'node:crypto'
import type { ArchivePart } from '../store/osv/archive-parts.ts'
import { combineCrc32c, crc32c } from './zip/crc32c.ts'

/** Checksums of a range of the archive. */
interface Sums {
  bytes: number
  crc32c: number
  /** Hex. */
  sha256: string
}

const MEMBERS_MASK = 31

/**
 * Reports whether a part of the archive begins with this id. About every 32nd id does. The id alone decides, so every
 * mirror divides the same records in the same way, and an added or removed record does not move the bounds of other
 * parts.
 */
export function startsPart(id: string): boolean {
  let hash = 0x811c9dc5
  for (let at = 0; at < id.length; at++) hash = Math.imul(hash ^ id.charCodeAt(at), 0x01000193)
  return ((hash ^ (hash >>> 15)) & MEMBERS_MASK) === 0
}

/** Computes checksums of a stream of bytes; without `crc` the CRC-32C stays 0. */
export function createSummer({ crc: withCrc = true } = {}): {
  update(chunk: Uint8Array): void
  take(): Sums
} {
  let sha256: Hash = createHash('sha256')
  let bytes = 0
  let crc = 0
  return {
    update(chunk) {
      sha256.update(chunk)
      if (withCrc) crc = crc32c(chunk, crc)
      bytes += chunk.length
    },
    /** Returns the checksums of the bytes since the previous call. */
    take() {
      const sums = { bytes, crc32c: crc, sha256: sha256.digest('hex') }
      sha256 = createHash('sha256')
      bytes = 0
      crc = 0
      return sums
    },
  }
}

/**
 * Returns the archive's digest, hex: SHA-256 over the SHA-256 of each part and of the tail (central directory and end
 * records). All bytes count, and equal records divide equally: an equal digest means equal bytes, on any mirror.
 */
export function digestOfParts(parts: Iterable<Pick<Sums, 'sha256'>>, tail: Sums): string {
  const digest = createHash('sha256')
  for (const { sha256 } of parts) digest.update(sha256, 'hex')
  return digest.update(tail.sha256, 'hex').digest('hex')
}

/** Returns the CRC-32C of the whole archive. */
export function crcOfParts(parts: Iterable<Pick<Sums, 'bytes' | 'crc32c'>>, tail: Sums): number {
  let crc = 0
  for (const part of parts) crc = combineCrc32c(crc, part.crc32c, part.bytes)
  return combineCrc32c(crc, tail.crc32c, tail.bytes)
}

/** Returns the bytes of all parts: the offset of the central directory. */
export function bytesOfParts(parts: Iterable<Pick<ArchivePart, 'bytes'>>): number {
  let bytes = 0
  for (const part of parts) bytes += part.bytes
  return bytes
}
