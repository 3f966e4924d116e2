import { closeSync, openSync, readSync, rmSync } from 'node:fs'
import { PRIVATE_FILE, writeAll } from '../../base/files.ts'
import type { DirectoryPages } from './writer.ts'

/** Bytes that wait to be written, on the disk. */
export type Spool = ReturnType<typeof createSpool>

/** Begins a spool in a file of its own. */
export function createSpool(path: string) {
  const fd = openSync(path, 'w+', PRIVATE_FILE)
  let size = 0
  return {
    /** Writes bytes; returns their offset in the file. */
    put(bytes: Uint8Array): number {
      const at = size
      writeAll(fd, bytes)
      size += bytes.length
      return at
    },
    /** `into` may be used as the buffer. */
    read(at: number, length: number, into?: Buffer): Buffer {
      const isRoomy = into !== undefined && into.length >= length
      const bytes = isRoomy ? into.subarray(0, length) : Buffer.allocUnsafe(length)
      if (readSync(fd, bytes, 0, length, at) < length) throw new Error('the spool is cut short')
      return bytes
    },
    /** Ends it and removes its file. */
    close(): void {
      closeSync(fd)
      rmSync(path, { force: true })
    },
  }
}

/** Keeps the pages of a directory in a spool. */
export function createSpooledPages(spool: Spool): DirectoryPages {
  const pages: { readonly at: number; readonly length: number }[] = []
  return {
    put: (page) => void pages.push({ at: spool.put(page), length: page.length }),
    each(use) {
      const page = Buffer.allocUnsafe(pages.reduce((most, { length }) => Math.max(most, length), 0))
      for (const { at, length } of pages) use(spool.read(at, length, page))
    },
  }
}
