import { accessSync, constants, rmSync, statfsSync, writeFileSync } from 'node:fs'
import { readdir, stat } from 'node:fs/promises'
import { join } from 'node:path'
import { fullness } from '../base/disk-space.ts'
import { PRIVATE_FILE, draftIn } from '../base/files.ts'
import { messageOf, systemCode } from '../base/errors.ts'
import type { StorageState } from '../base/reports/storage.ts'

/** Free bytes below which the disk is reported as full: not even the row of a run could be recorded. */
const LEAST_BYTES = 1_000_000
/** Bytes of the probe file: enough to need new blocks on any file system. */
const PROBE_BYTES = 65_536
const FULL: ReadonlySet<string | undefined> = new Set(['ENOSPC', 'EDQUOT', 'EFBIG'])

/** Reports whether an error of the file system means that there is no room. */
export function isFull(error: unknown): boolean {
  return FULL.has(systemCode(error))
}

/**
 * Checks the data folder. With `write` a small file is written and removed, since no number shows a quota. Without it, a folder on
 * a disk that is mounted read-only is failing, and rights of this user count for nothing: the daemon may be another one's.
 */
export function probeStorage(dataDir: string, write: boolean): StorageState {
  const freeBytes = freeIn(dataDir)
  try {
    if (write) tryWriting(draftIn(dataDir))
    else refuseReadOnly(dataDir)
  } catch (error) {
    const noRoom = isFull(error)
    const reason = noRoom
      ? `the disk of the data folder (data.dir) ${fullness(dataDir)}`
      : `the data folder (data.dir) cannot be written to (${systemCode(error) ?? messageOf(error)})`
    return { state: noRoom ? 'full' : 'failing', reason, freeBytes }
  }
  if (freeBytes === null || freeBytes >= LEAST_BYTES) return { state: 'ok', reason: null, freeBytes }
  const reason = `the disk of the data folder (data.dir) has ${freeBytes} bytes left: free some space`
  return { state: 'full', reason, freeBytes }
}

/** Interval between checks whether the data folder is writable again, milliseconds. */
const CHECK_MS = 60_000

/**
 * Returns a function that stores work which failed for lack of disk space; `work` is called for each item once the data
 * folder is writable again. Checks every minute while items wait; its timer does not keep the process alive.
 */
export function awaitRoom<T>(dataDir: string, work: (waiting: T) => void, checkMs = CHECK_MS): (waiting: T) => void {
  const waiting = new Set<T>()
  const check = (): void => {
    if (probeStorage(dataDir, true).state !== 'ok') return later()
    const all = [...waiting]
    waiting.clear()
    for (const one of all) work(one)
  }
  const later = (): void => void setTimeout(check, checkMs).unref()
  return (one) => {
    if (waiting.size === 0) later()
    waiting.add(one)
  }
}

/** Throws the system's error of a file system that is mounted read-only. */
function refuseReadOnly(dataDir: string): void {
  try {
    accessSync(dataDir, constants.W_OK)
  } catch (error) {
    if (systemCode(error) === 'EROFS') throw error
  }
}

function tryWriting(path: string): void {
  try {
    writeFileSync(path, Buffer.alloc(PROBE_BYTES), { mode: PRIVATE_FILE })
  } finally {
    rmSync(path, { force: true })
  }
}

/** Returns the bytes of all files in the data folder, links not followed; null if it cannot be read. */
export async function folderBytes(dataDir: string): Promise<number | null> {
  let bytes = 0
  try {
    for (const one of await readdir(dataDir, { recursive: true, withFileTypes: true }))
      if (one.isFile()) bytes += await sizeOfFile(join(one.parentPath, one.name))
    return bytes
  } catch {
    return null // the state of the folder is reported by the probe
  }
}

/** A file that was removed meanwhile has no size. */
async function sizeOfFile(path: string): Promise<number> {
  return stat(path).then(
    ({ size }) => size,
    () => 0,
  )
}

function freeIn(dataDir: string): number | null {
  try {
    const { bavail, bsize } = statfsSync(dataDir)
    return bavail * bsize
  } catch {
    return null // the write reports the reason
  }
}
