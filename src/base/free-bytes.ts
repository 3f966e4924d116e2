import { Buffer } from 'node:buffer'

/**
 * Frees the memory of large bytes that nothing uses any more, and of all views of the same memory. The garbage collector
 * would let some 64 MB of them wait in each thread. Small ones, which share their memory with others, are left to it.
 */
export function freeBytes({ buffer }: ArrayBufferView): void {
  if (buffer instanceof ArrayBuffer && buffer.byteLength > Buffer.poolSize) buffer.transfer(0)
}

/** Size from which freeing at once is worth its call, bytes. */
const LEAST_BYTES = 16_384

/** Does the same for bytes that are all of their memory: nothing else has a part of it. Others are left as they are. */
export function freeWhole({ buffer, byteLength }: ArrayBufferView): void {
  if (byteLength < LEAST_BYTES || buffer.byteLength !== byteLength) return
  if (buffer instanceof ArrayBuffer) buffer.transfer(0)
}
