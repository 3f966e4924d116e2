import { readFileSync, rmSync } from 'node:fs'
import { join } from 'node:path'
import { messageOf, systemCode } from '../base/errors.ts'
import { isUnreadable } from './database/faults.ts'
import { namingFaults, openWriter } from './database/open.ts'
import { replacePrivateFile } from '../base/files.ts'
import { createKeyWriter, isSameKey } from './keys.ts'

/** Name of the first key in `keys list`, and of its file in the data folder. */
const LOCAL_KEY = 'local.key'

/** Returns the path of the file with the first key, readable by its owner only. */
function localKeyPath(dataDir: string): string {
  return join(dataDir, LOCAL_KEY)
}

/** Returns the key in that file; null if there is none. Throws the system's error if the file cannot be read. */
export function readLocalKey(dataDir: string): string | null {
  try {
    return readFileSync(localKeyPath(dataDir), 'utf8').trim() || null
  } catch (error) {
    if (systemCode(error) === 'ENOENT') return null
    throw error
  }
}

/**
 * Creates the first key of a mirror and writes it to `local.key`; does nothing if a key was ever created, revoked ones
 * included. The file is written inside the transaction that stores the key's hash: a process that ends between the two
 * leaves a file whose key is not valid, and the next start replaces it. Returns whether a key was created. Throws
 * `storage` without waiting when another process is writing.
 */
function createLocalKey(dataDir: string, now: number): boolean {
  const db = openWriter(dataDir)
  try {
    db.pragma('busy_timeout = 0')
    const keys = createKeyWriter(db)
    const write = (key: string): void => replacePrivateFile(localKeyPath(dataDir), `${key}\n`)
    return namingFaults(dataDir, () => keys.createFirstKey(LOCAL_KEY, now, write))
  } finally {
    db.close()
  }
}

/** Pause before another attempt to create the first key, milliseconds. */
const RETRY_MS = 2_000

/** Log for the creation of the key. */
interface KeyLog {
  info(fields: object, message: string): void
  warn(fields: object, message: string): void
}

/**
 * Creates the first key before a daemon serves, so that private data is never served without one, however it is added
 * later. Retries while another process is writing. Returns a function that stops the retries. Throws `corrupt` at once where the
 * keys cannot be read: then nothing can be served.
 */
export function startLocalKey(dataDir: string, now: () => number, log: KeyLog): () => void {
  let timer: NodeJS.Timeout | undefined
  let logged = ''
  const make = (isFirst: boolean): void => {
    try {
      if (createLocalKey(dataDir, now()))
        log.info({}, `a key for the private paths was created: it is in ${localKeyPath(dataDir)}`)
    } catch (error) {
      if (isFirst && isUnreadable(error)) throw error
      const why = messageOf(error)
      const text = `the key for the private paths cannot be created yet, it is retried: ${why}`
      if (text !== logged) log.warn({}, (logged = text))
      timer = setTimeout(make, RETRY_MS, false).unref()
    }
  }
  make(true)
  return () => clearTimeout(timer)
}

/** Removes `local.key` if the key in it has this hash, as when that key is revoked. */
export function discardLocalKey(dataDir: string, hash: Buffer, secret: Buffer): void {
  const key = readLocalKey(dataDir)
  if (key !== null && isSameKey(key, hash, secret)) rmSync(localKeyPath(dataDir), { force: true })
}
