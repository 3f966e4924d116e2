import { statfs } from 'node:fs/promises'
import { MirrorError } from '../errors.ts'

/** Bytes that the disk of a folder has left for this user. */
export async function freeBytes(dir: string): Promise<number> {
  const { bavail, bsize } = await statfs(dir)
  return bavail * bsize
}

/** Throws `storage` when a folder's disk has less room than is needed, before anything is written. */
export async function refuseFullDisk(dir: string, needed: number): Promise<void> {
  const free = await freeBytes(dir)
  if (free >= needed) return
  throw new MirrorError(
    'storage',
    `about ${megabytes(needed)} are needed in ${dir}, and ${megabytes(free)} are free: nothing was changed. ` +
      'Free some space and import again: what is in place already is not counted twice',
  )
}

function megabytes(bytes: number): string {
  return `${Math.ceil(bytes / 1e6)} MB`
}
