import { readFileSync, rmSync } from 'node:fs'
import { join } from 'node:path'
import { messageOf, systemCode } from '../core/errors.ts'
import { guarded, openWriter } from './database/open.ts'
import { replacePrivateFile } from '../core/files.ts'
import { createKeyWriter, isSameKey } from './keys.ts'

/** The name that the first key has in `keys list`, and its file in the data folder. */
const LOCAL_KEY = 'local.key'

/** The file that holds the first key, for its owner alone. */
function localKeyPath(dataDir: string): string {
  return join(dataDir, LOCAL_KEY)
}

/** The key in that file; null when there is none. Throws the system's error for a file that cannot be read. */
export function readLocalKey(dataDir: string): string | null {
  try {
    return readFileSync(localKeyPath(dataDir), 'utf8').trim() || null
  } catch (error) {
    if (systemCode(error) === 'ENOENT') return null
    throw error
  }
}

/**
 * Makes the first key of a mirror and writes it to `local.key`; does nothing where a key was ever made, revoked ones
 * included. The file is written inside the transaction that stores the key's hash: a process that ends between the two
 * leaves a file whose key opens nothing, and the next start replaces it. Returns whether one was made. Throws `storage`, at
 * once when another process is writing.
 */
function makeLocalKey(dataDir: string, now: number): boolean {
  const db = openWriter(dataDir)
  try {
    db.pragma('busy_timeout = 0')
    const keys = createKeyWriter(db)
    const write = (key: string): void => replacePrivateFile(localKeyPath(dataDir), `${key}\n`)
    return guarded(dataDir, () => keys.createFirstKey(LOCAL_KEY, now, write))
  } finally {
    db.close()
  }
}

/** Pause before the first key is tried to be made again, milliseconds. */
const RETRY_MS = 2_000

/** Where it is logged that a key was made, and where. */
interface KeyLog {
  info(fields: object, message: string): void
  warn(fields: object, message: string): void
}

/**
 * Makes the first key for a daemon, before it serves: so private data is never served without one, whatever brings it and
 * when. While another process is writing it is tried again. Returns what ends that.
 */
export function startLocalKey(dataDir: string, now: () => number, log: KeyLog): () => void {
  let timer: NodeJS.Timeout | undefined
  const make = (): void => {
    try {
      if (makeLocalKey(dataDir, now()))
        log.info({}, `a key for the private paths was made: it is in ${localKeyPath(dataDir)}`)
    } catch (error) {
      log.warn({}, `no key can be made yet, and it is tried again: ${messageOf(error)}`)
      timer = setTimeout(make, RETRY_MS).unref()
    }
  }
  make()
  return () => clearTimeout(timer)
}

/** Removes `local.key` when the key in it is the one with this hash, as when that one is revoked. */
export function discardLocalKey(dataDir: string, hash: Buffer, secret: Buffer): void {
  const key = readLocalKey(dataDir)
  if (key !== null && isSameKey(key, hash, secret)) rmSync(localKeyPath(dataDir), { force: true })
}
