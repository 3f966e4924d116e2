import { Buffer } from 'node:buffer'

/**
 * Frees the memory of large bytes that nothing uses any more, and of all views of the same memory. The garbage collector
 * would let some 64 MB of them wait in each thread. Small ones, which share their memory with others, are left to it.
 */
export function freeBytes({ buffer }: ArrayBufferView): void {
  if (buffer instanceof ArrayBuffer && buffer.byteLength > Buffer.poolSize) buffer.transfer(0)
}
