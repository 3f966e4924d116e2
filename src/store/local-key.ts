import { lstatSync, readFileSync, rmSync } from 'node:fs'
import { join } from 'node:path'
import { messageOf, systemCode } from '../base/errors.ts'
import { isUnreadable, namingFaults } from './database/faults.ts'
import { openWriter } from './database/open.ts'
import { replacePrivateFile } from '../base/files.ts'
import { createKeyWriter, isKeyForm, isSameKey, shownPrefix } from './keys.ts'
import { closing } from '../base/closing.ts'

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

/** What there is to be said of the first key, and how. */
interface Notice {
  readonly level: 'info' | 'warn'
  readonly text: string
}

/**
 * Sees to the first key of a mirror, in `local.key`. Without any key, revoked ones included, that of the file is stored again: the
 * database that had it was lost. Who may write that file may write the database too, so this gives no client more. Where it has none,
 * one is created, and the file written inside the transaction that stores the key's hash: a process that ends between the two
 * leaves a key that the next start stores. Throws `storage` without waiting when another process is writing.
 */
function settleLocalKey(dataDir: string, now: number): Notice | null {
  const db = openWriter(dataDir)
  return closing(db, () => {
    db.pragma('busy_timeout = 0')
    const keys = createKeyWriter(db)
    const path = localKeyPath(dataDir)
    const deliver = (key: string): void => replacePrivateFile(path, `${key}\n`)
    return namingFaults(dataDir, () => {
      const found = readOwnKey(dataDir)
      const kept = found.isSafe ? found.key : null
      const done = keys.storeFirstKey({ name: LOCAL_KEY, now, kept, deliver })
      if (done === 'kept') return warning(`mirror.db had no key: that in ${path} is taken into it and valid. ${OTHERS}`)
      if (done === 'created') return noticeOfNew(path, found.key)
      if (found.key === null || !isKeyForm(found.key) || keys.isValidKey(found.key)) return null
      return warning(
        `the key ${shownPrefix(found.key)}… in ${path} is not valid in this mirror.db: clients that send it get 401. ${OTHERS}`,
      )
    })
  })
}

const OTHERS = '"patchmirror keys create" makes keys for the clients whose keys are not valid any more'

function warning(text: string): Notice {
  return { level: 'warn', text }
}

function noticeOfNew(path: string, replaced: string | null): Notice {
  const text = `a key for the private paths was created: it is in ${path}`
  if (replaced === null) return { level: 'info', text }
  return warning(
    `${text}. It replaces ${keyNamed(replaced)}, which was not taken into mirror.db (no key, or not in a private file of this user): clients that send it get 401`,
  )
}

/** Names a key without showing it; what is in the file may be something else. */
function keyNamed(key: string): string {
  return isKeyForm(key) ? `the key ${shownPrefix(key)}…` : 'what was in the file'
}

/**
 * Reads the key in `local.key`; '' where it cannot be read, null where there is none. Safe to be stored: it has the form of one, in a
 * file that is this user's, and private.
 */
function readOwnKey(dataDir: string): { key: string | null; isSafe: boolean } {
  try {
    const key = readLocalKey(dataDir)
    if (key === null) return { key, isSafe: false }
    const file = lstatSync(localKeyPath(dataDir))
    const isPrivate = file.isFile() && file.uid === process.geteuid?.() && (file.mode & 0o077) === 0
    return { key, isSafe: isPrivate && isKeyForm(key) }
  } catch {
    return { key: '', isSafe: false }
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
 * Sees to the first key before a daemon serves, so that private data is never served without one, however it is added
 * later. Retries while another process is writing. Returns a function that stops the retries. Throws `corrupt` at once where the
 * keys cannot be read: then nothing can be served.
 */
export function startLocalKey(dataDir: string, now: () => number, log: KeyLog): () => void {
  let timer: NodeJS.Timeout | undefined
  let logged = ''
  const make = (isFirst: boolean): void => {
    try {
      const notice = settleLocalKey(dataDir, now())
      if (notice !== null) log[notice.level]({}, notice.text)
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
