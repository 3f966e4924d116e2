import { randomBytes } from 'node:crypto'
import { rmSync, statfsSync, writeFileSync } from 'node:fs'
import { join } from 'node:path'
import { messageOf, systemCode } from '../core/errors.ts'

/** Whether the data folder can be written to: `full` when there is no room, `failing` for any other reason. */
export interface StorageState {
  readonly state: 'ok' | 'full' | 'failing'
  /** Why it is not `ok`, without the name of the folder. */
  readonly reason: string | null
  /** Free for this user, bytes; null when the system does not say. */
  readonly freeBytes: number | null
}

/** With less than this not even the run of a sync can be recorded, bytes. */
const LEAST_BYTES = 1_000_000
/** Enough to need new blocks on any file system, bytes. */
const PROBE_BYTES = 65_536
const FULL: ReadonlySet<string | undefined> = new Set(['ENOSPC', 'EDQUOT', 'EFBIG'])

/** Looks how the data folder stands. With `write` a small file is written and removed: quotas show in no number. */
export function probeStorage(dataDir: string, write: boolean): StorageState {
  const freeBytes = freeIn(dataDir)
  try {
    if (write) tryWriting(join(dataDir, `.probe-${randomBytes(6).toString('hex')}`))
  } catch (error) {
    const isFull = FULL.has(systemCode(error))
    const reason = isFull
      ? 'the disk of the data folder (data.dir) is full: free some space'
      : `the data folder (data.dir) cannot be written to (${systemCode(error) ?? messageOf(error)})`
    return { state: isFull ? 'full' : 'failing', reason, freeBytes }
  }
  if (freeBytes === null || freeBytes >= LEAST_BYTES)
    return { state: 'ok', reason: null, freeBytes }
  const reason = `the disk of the data folder (data.dir) has ${freeBytes} bytes left: free some space`
  return { state: 'full', reason, freeBytes }
}

/** So often is looked whether there is room again, milliseconds. */
const LOOK_MS = 60_000

/**
 * Remembers what could not be done for want of room, and calls `work` for each once the data folder can be written to
 * again. It looks each minute while something waits, and keeps no process alive.
 */
export function awaitRoom<T>(
  dataDir: string,
  work: (waiting: T) => void,
  lookMs = LOOK_MS,
): (waiting: T) => void {
  const waiting = new Set<T>()
  const look = (): void => {
    if (probeStorage(dataDir, true).state !== 'ok') return later()
    const all = [...waiting]
    waiting.clear()
    for (const one of all) work(one)
  }
  const later = (): void => void setTimeout(look, lookMs).unref()
  return (one) => {
    if (waiting.size === 0) later()
    waiting.add(one)
  }
}

function tryWriting(path: string): void {
  try {
    writeFileSync(path, Buffer.alloc(PROBE_BYTES), { mode: 0o600 })
  } finally {
    rmSync(path, { force: true })
  }
}

function freeIn(dataDir: string): number | null {
  try {
    const { bavail, bsize } = statfsSync(dataDir)
    return bavail * bsize
  } catch {
    return null // the write says why
  }
}
