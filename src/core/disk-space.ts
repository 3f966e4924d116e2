import { statfs } from 'node:fs/promises'
import { MirrorError } from './errors.ts'

/** Bytes that the disk of a folder has left for this user. */
async function freeBytes(dir: string): Promise<number> {
  const { bavail, bsize } = await statfs(dir)
  return bavail * bsize
}

/** What is to be left beside `bytes` that are written, by what these are: for logs, lists and the file system itself. */
export function reserveFor(bytes: number, least: number, most: number): number {
  return Math.min(most, least + Math.ceil(bytes / 8))
}

/** Throws `storage` when a folder's disk has less room than is needed, before anything is written. */
export async function refuseFullDisk(dir: string, needed: number): Promise<void> {
  const free = await freeBytes(dir)
  if (free >= needed) return
  throw new MirrorError(
    'storage',
    `about ${shownBytes(needed)} are needed in ${dir}, and ${shownBytes(free)} are free: nothing was changed. ` +
      'Free some space and import again: what is in place already is not counted twice',
  )
}

/** A number of bytes for people: in KB where it is small, never less than it is. */
export function shownBytes(bytes: number): string {
  if (bytes < 1e6) return `${Math.ceil(bytes / 1e3)} KB`
  return bytes < 1e7
    ? `${(Math.ceil(bytes / 1e5) / 10).toFixed(1)} MB`
    : `${Math.ceil(bytes / 1e6)} MB`
}
