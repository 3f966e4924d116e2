import { spawnSync } from 'node:child_process'
import { closeSync, mkdtempSync, openSync, rmSync, statfsSync, writeSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { afterAll } from 'vitest'
import { systemCode } from '../../src/base/errors.ts'

/** The name of the file that takes the room of a disk. */
export const BALLAST = 'ballast'
const MIB = 2 ** 20
const CHUNKS = [MIB, 2 ** 12, 1].map((bytes) => Buffer.alloc(bytes))

/** Mounts a file system of this size, such as "12m", in a folder of its own; null where a test may not mount one. */
export function mountDisk(size: string): string | null {
  const dir = mkdtempSync(join(tmpdir(), 'patchmirror-disk-'))
  const options = ['-t', 'tmpfs', '-o', `size=${size}`, 'tmpfs', dir]
  if (spawnSync('mount', options, { stdio: 'ignore' }).status === 0) return dir
  rmSync(dir, { recursive: true })
  return null
}

/** Unmounts such a file system and removes its folder. */
export function unmountDisk(dir: string): void {
  spawnSync('umount', ['-l', dir], { stdio: 'ignore' })
  rmSync(dir, { recursive: true, force: true })
}

/** Mounts such a file system again, so that nothing can be written to it. */
export function makeReadOnly(dir: string): void {
  remount(dir, 'ro')
}

/** Lets such a file system have this many files and folders, its own folder included. */
export function limitInodes(dir: string, count: number): void {
  remount(dir, `nr_inodes=${count}`)
}

function remount(dir: string, option: string): void {
  const { status } = spawnSync('mount', ['-o', `remount,${option}`, dir], { stdio: 'ignore' })
  if (status !== 0) throw new Error(`${dir} could not be mounted again (${option})`)
}

/** Returns what mounts such file systems for the tests of a file, after which they are unmounted. */
export function smallDisks(): (size: string) => string {
  const mounts: string[] = []
  afterAll(() => mounts.forEach(unmountDisk))
  return (size) => {
    const dir = mountDisk(size)
    if (dir === null) throw new Error('no file system could be mounted')
    mounts.push(dir)
    return dir
  }
}

/** Whether a test may mount a file system here. */
export function mayMount(): boolean {
  const dir = mountDisk('1m')
  if (dir !== null) unmountDisk(dir)
  return dir !== null
}

/**
 * Takes the room of the file system of a folder but for these bytes; with 0 all of it, also while other processes take and
 * free some. A second call takes what was freed since.
 */
export function fillDisk(dir: string, leave = 0): void {
  const fd = openSync(join(dir, BALLAST), 'a')
  try {
    if (leave === 0) for (const chunk of CHUNKS) writeUntilFull(fd, chunk)
    else writeBytes(fd, roomOf(dir) - leave)
  } finally {
    closeSync(fd)
  }
}

/** Gives back what {@link fillDisk} took. */
export function emptyDisk(dir: string): void {
  rmSync(join(dir, BALLAST), { force: true })
}

function roomOf(dir: string): number {
  const { bavail, bsize } = statfsSync(dir)
  return bavail * bsize
}

function writeBytes(fd: number, bytes: number): void {
  for (let left = bytes; left > 0;) left -= writeSync(fd, Buffer.alloc(Math.min(left, MIB)))
}

/** Writes chunks until there is no room; the last one may be written in part. */
function writeUntilFull(fd: number, chunk: Buffer): void {
  try {
    for (;;) writeSync(fd, chunk)
  } catch (error) {
    if (systemCode(error) !== 'ENOSPC') throw error
  }
}
