import { statfsSync } from 'node:fs'
import { statfs } from 'node:fs/promises'
import { MirrorError } from './errors.ts'

/** Returns the free bytes on a folder's disk, for this user. */
async function freeBytes(dir: string): Promise<number> {
  const { bavail, bsize } = await statfs(dir)
  return bavail * bsize
}

/** Says of a disk that took no more what it lacks, and what to do: a file system may be out of inodes with gigabytes free. */
export function fullness(dir: string): string {
  return isOutOfInodes(dir) ? 'has no free inodes ("df -i"): remove some files' : 'is full: free some space'
}

function isOutOfInodes(dir: string): boolean {
  try {
    const { files, ffree } = statfsSync(dir)
    return files > 0 && ffree === 0
  } catch {
    return false
  }
}

/**
 * Returns the bytes to leave free beside `bytes` to write, for logs, indexes and the file system: an eighth, within
 * bounds.
 */
export function reserveFor(bytes: number, least: number, most: number): number {
  return Math.min(most, least + Math.ceil(bytes / 8))
}

const IMPORT_ADVICE = 'Free some space and import again: data that is already stored is not counted again'

/** Throws `storage` when a folder's disk has less than `needed` bytes free, before anything is written. */
export async function refuseFullDisk(dir: string, needed: number, advice = IMPORT_ADVICE): Promise<void> {
  const free = await freeBytes(dir)
  if (free >= needed) return
  throw new MirrorError(
    'storage',
    `about ${shownBytes(needed)} are needed in ${dir}, and ${shownBytes(free)} are free: nothing was changed. ${advice}`,
  )
}

/** Formats a number of bytes for people, rounded up, in KB or MB. */
export function shownBytes(bytes: number): string {
  if (bytes < 1e6) return `${Math.ceil(bytes / 1e3)} KB`
  return bytes < 1e7 ? `${(Math.ceil(bytes / 1e5) / 10).toFixed(1)} MB` : `${Math.ceil(bytes / 1e6)} MB`
}
