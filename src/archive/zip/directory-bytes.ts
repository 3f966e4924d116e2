import { Buffer } from 'node:buffer'
import { CENTRAL } from './headers.ts'
import { freeBytes } from '../../base/free-bytes.ts'

/** The bytes of a central directory, of which the entry that was asked for last is in memory. */
export interface DirectoryBytes {
  readonly size: number
  /** Returns where the entry at a position of the directory begins in `bytes()`, which has all of it that the directory has. */
  at(position: number): number
  /** Valid until the next call of `at`. */
  bytes(): Buffer
  /** Frees the memory at once. */
  free(): void
}

/** Returns a directory that is in memory. */
export function wholeDirectory(bytes: Buffer): DirectoryBytes {
  return {
    size: bytes.length,
    at: (position) => position,
    bytes: () => bytes,
    free: () => freeBytes(bytes),
  }
}

/** Bytes that are read at once where entries follow each other: more than the longest entry has. */
const PAGE = 1 << 18
/** Bytes that are read for an entry elsewhere. */
const SMALL = 1 << 9

/** Returns a directory of `size` bytes that `read` (a buffer to fill, from a position of the directory) reads page by page. */
export function pagedDirectory(size: number, read: (position: number, into: Buffer) => void): DirectoryBytes {
  const page = Buffer.allocUnsafeSlow(PAGE)
  let start = 0
  let end = 0
  let bytes = page.subarray(0, 0)
  const load = (position: number, most: number): void => {
    const length = Math.max(0, Math.min(most, size - position))
    bytes = length === PAGE ? page : page.subarray(0, length)
    start = 0
    end = 0 // where reading fails, nothing is known of the page
    read(position, bytes)
    start = position
    end = position + length
  }
  const isIn = (position: number, length: number): boolean =>
    position >= start && (position + length <= end || (end === size && position <= end))
  return {
    size,
    at(position) {
      if (!isIn(position, CENTRAL)) load(position, position >= start && position <= end ? PAGE : SMALL)
      if (!isIn(position, entryBytes(bytes, position - start))) load(position, PAGE)
      return position - start
    },
    bytes: () => bytes,
    free: () => freeBytes(page),
  }
}

/** Returns the bytes of the entry at a position; those of its head alone where not even that is there. */
export function entryBytes(bytes: Buffer, at: number): number {
  if (at + CENTRAL > bytes.length) return CENTRAL
  const name = bytes.readUInt16LE(at + 28)
  const extra = bytes.readUInt16LE(at + 30)
  return CENTRAL + name + extra + bytes.readUInt16LE(at + 32)
}
