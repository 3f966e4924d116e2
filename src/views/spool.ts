import { closeSync, openSync, readSync, rmSync, writeSync } from 'node:fs'
import { PRIVATE_FILE } from '../store/folder.ts'

/** Streams that wait to be written, on the disk. */
export interface Spool {
  /** Where the bytes lie in it. */
  put(bytes: Buffer): number
  read(at: number, length: number): Buffer
  /** Ends it and removes its file. */
  close(): void
}

/** Begins a spool in a file of its own. */
export function createSpool(path: string): Spool {
  const fd = openSync(path, 'w+', PRIVATE_FILE)
  let size = 0
  return {
    put(bytes) {
      const at = size
      while (size < at + bytes.length) size += writeSync(fd, bytes, size - at)
      return at
    },
    read(at, length) {
      const bytes = Buffer.allocUnsafe(length)
      if (readSync(fd, bytes, 0, length, at) < length) throw new Error('the spool is cut short')
      return bytes
    },
    close() {
      closeSync(fd)
      rmSync(path, { force: true })
    },
  }
}
