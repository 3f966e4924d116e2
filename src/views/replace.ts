import { closeSync, fsyncSync, openSync, renameSync, rmSync, writeSync } from 'node:fs'
import { basename, dirname, join } from 'node:path'
import { PRIVATE_FILE } from '../store/folder.ts'

/**
 * Replaces a file as a whole: what `fill` writes lies beside it, on the disk, before it gets the name. Whoever reads sees
 * the old content or the new. When `fill` throws, nothing is changed.
 */
export function replaceFile(
  path: string,
  fill: (write: (piece: Uint8Array) => void) => void,
): void {
  const folder = dirname(path)
  const temporary = join(folder, `.${basename(path)}.${process.pid}`)
  const fd = openSync(temporary, 'w', PRIVATE_FILE)
  try {
    try {
      fill((piece) => {
        for (let at = 0; at < piece.length;) at += writeSync(fd, piece, at)
      })
      fsyncSync(fd)
    } finally {
      closeSync(fd)
    }
    renameSync(temporary, path)
  } catch (error) {
    rmSync(temporary, { force: true })
    throw error
  }
  syncFolder(folder)
}

/** A name is on the disk with its folder; where folders cannot be opened, the system sees to it. */
function syncFolder(folder: string): void {
  try {
    const fd = openSync(folder, 'r')
    fsyncSync(fd)
    closeSync(fd)
  } catch {
    // Not on every system.
  }
}
