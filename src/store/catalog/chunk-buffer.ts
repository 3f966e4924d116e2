import { freeBytes, freeWhole } from '../../base/free-bytes.ts'

const FIRST_BYTES = 16_384
/** Bytes of one network read. */
const READ_BYTES = 65_536

/**
 * Creates a buffer that grows as needed and is reused for each chunk, so that large documents create no garbage. The
 * bytes of a document that comes in one piece are not copied. Bytes that were copied are freed, where they are all of their
 * memory: a large document's would wait for a garbage collection by the dozen.
 */
export function createChunkBuffer(chunkBytes: number) {
  const largest = chunkBytes + READ_BYTES
  let buffer: Buffer = Buffer.alloc(0)
  let filled = 0
  let isOwn = false
  return {
    /** Returns the number of buffered bytes. The caller does not use these bytes any more. */
    add(bytes: Buffer): number {
      if (filled === 0 && buffer.length === 0) {
        buffer = bytes
        return (filled = bytes.length)
      }
      const needed = filled + bytes.length
      if (needed > buffer.length) {
        const doubled = Math.min(largest, Math.max(FIRST_BYTES, 2 * buffer.length))
        const larger = Buffer.allocUnsafeSlow(Math.max(needed, doubled))
        buffer.copy(larger, 0, 0, filled)
        freeWhole(buffer)
        buffer = larger
        isOwn = true
      }
      bytes.copy(buffer, filled)
      freeWhole(bytes)
      return (filled = needed)
    },
    /** Returns the buffered bytes; a view. */
    bytes: (): Buffer => buffer.subarray(0, filled),
    /** Removes the first bytes. */
    drop(bytes: number): void {
      if (isOwn) buffer.copyWithin(0, bytes, filled)
      else buffer = buffer.subarray(bytes)
      filled -= bytes
    },
    /** Frees the buffer; it is not used after it. */
    free(): void {
      if (isOwn) freeBytes(buffer)
    },
  }
}
