import { accessSync, constants, statSync } from 'node:fs'
import { basename, dirname, join, sep } from 'node:path'
import { fullness } from '../../base/disk-space.ts'
import { MirrorError, messageOf, systemCode } from '../../base/errors.ts'
import { describeLastBackup } from '../notes.ts'
import { isLockError, lockFault } from '../lock-effect.ts'
import { databaseOf } from '../located.ts'
import { foreignJournal } from '../foreign-journal.ts'
import { LOST_WITH_INBOX } from './migration-copy.ts'

/** Returns the error about content of mirror.db that is damaged, of which SQLite knows nothing. */
export function damagedContent(what: string): Error {
  const fault = { database: 'mirror.db', isContent: true }
  return Object.assign(new Error(`${what}. ${CONTENT_ADVICE}`), fault)
}

const CONTENT_ADVICE =
  'Run "patchmirror doctor --data --repair": it fetches what is damaged again, beside a running daemon; without an upstream it says what does.'

/** Runs `work` and converts errors of SQLite and the system to `corrupt` and `storage`. `path`: the database, where they name none. */
export function namingFaults<T>(dataDir: string, work: () => T, path = join(dataDir, 'mirror.db')): T {
  try {
    return work()
  } catch (error) {
    throw nameStorageError(error, dataDir, path)
  }
}

/** What became of a database that was there: no file, no content, or another file at its path. */
export type Loss = 'missing' | 'empty' | 'other'

const LOSSES: Readonly<Record<Loss, string>> = {
  missing: 'the file is not there any more',
  empty: 'the file is empty',
  other: 'the file is not the one that the daemon opened',
}

/** Returns the error about a database that was lost, as SQLite's of a file that is none. */
export function lostDatabase(path: string, loss: Loss): Error {
  const fault = { code: 'SQLITE_NOTADB', database: path, loss }
  return Object.assign(new Error(LOSSES[loss]), fault)
}

/**
 * Returns what became of a database; null: a file with content is there, or what is no file, of which opening it says what is wrong.
 * `number`: what it had (`fileNumber`); null: not known, so that another one is not seen. Throws the system's error.
 */
export function lossAt(path: string, number: bigint | null = null): Loss | null {
  const file = statSync(path, { bigint: true, throwIfNoEntry: false })
  if (file === undefined) return 'missing'
  if (!file.isFile()) return null
  if (file.size === 0n) return 'empty'
  return number === null || file.ino === number ? null : 'other'
}

/** Reports whether an error says that stored data cannot be read: it is damaged, or its disk fails. */
export function isUnreadable(error: unknown): boolean {
  const code = systemCode(error instanceof MirrorError ? error.cause : error) ?? ''
  if (error instanceof MirrorError && error.code === 'corrupt') return true
  if (error instanceof Error && 'isContent' in error) return true
  return isDamage(code, messageOf(error)) || code.startsWith('SQLITE_IOERR')
}

/** What SQLite says of a schema that is not the one that its version number names. */
const OTHER_SCHEMA =
  /^(no such (table|column|index|trigger|view)|malformed database schema|(table|index|trigger|view) \S+ already exists|duplicate column name|table \S+ has (no column|\d+ columns))/

function isDamage(code: string, message: string): boolean {
  if (code === 'SQLITE_NOTADB' || code.startsWith('SQLITE_CORRUPT')) return true
  return code === 'SQLITE_ERROR' && OTHER_SCHEMA.test(message)
}

/**
 * Returns a `corrupt` or `storage` error, which names the file, what is wrong and what to do, for an error of SQLite or
 * the file system; any other error unchanged. `path`: the database, where the error does not name it. Every message about
 * such an error is made here. Without a folder only errors of SQLite are named.
 */
export function nameStorageError(error: unknown, dataDir: string | null, path?: string): unknown {
  if (error instanceof Error && 'isContent' in error) return new MirrorError('corrupt', error.message, { cause: error })
  const code = systemCode(error)
  if (code === undefined || error instanceof MirrorError) return error
  const usual = dataDir === null ? null : join(dataDir, 'mirror.db')
  const file = databaseOf(error) ?? path ?? usual
  const why = messageOf(error)
  if (isDamage(code, why)) return damaged(file, why, error)
  if (dataDir === null && !code.startsWith('SQLITE_')) return error
  const unlockable = dataDir !== null && isLockError(code) ? lockFault(dataDir) : null
  if (unlockable !== null) return unlockable
  const foreign = code === 'SQLITE_READONLY_ROLLBACK' && file !== null ? foreignJournal(file) : null
  if (foreign !== null) return new MirrorError('schema', foreign, { cause: error })
  const fault = STORAGE_FAULTS[code]
  if (fault !== undefined) {
    const folder = dataDir ?? (file === null ? '(data.dir)' : dirname(file))
    const closed = (file === null ? null : closedPart(file)) ?? closedOnTheWay(error, folder)
    const said = fault === FULL ? `${fullness(folder)} and try again` : fault
    const text = closed === null ? `the data folder ${folder} ${said} (${why})` : `${closed} (${why})`
    return new MirrorError('storage', text, { cause: error })
  }
  if (!code.startsWith('SQLITE_IOERR')) return error
  const text = `${file ?? 'the database'} cannot be read or written (${why}). ${FAILING_DISK}`
  return new MirrorError('storage', text, { cause: error })
}

/**
 * Says which file of a database this user may not read and write, though SQLite names none; null: each, or not known, as in a folder
 * that this user may not enter.
 */
function closedPart(file: string): string | null {
  for (const path of [file, `${file}-wal`, `${file}-shm`]) {
    const closed = closedAt(path)
    if (closed !== null) return closed
  }
  return null
}

/** Says the same of what is closed on the way from the data folder to the file that an error of the system names. */
function closedOnTheWay(error: unknown, dataDir: string): string | null {
  const named = error instanceof Error && 'path' in error ? String(error.path) : dataDir
  for (let path = named; path.startsWith(`${dataDir}${sep}`); path = dirname(path)) {
    const closed = closedAt(path)
    if (closed !== null) return closed
  }
  return null
}

/** Says of a file or folder that this user may not read and write it, and what to do; null: it may, or that is not known. */
export function closedAt(path: string): string | null {
  try {
    accessSync(path, constants.R_OK | constants.W_OK)
    return null
  } catch (error) {
    const owner = systemCode(error) === 'EACCES' ? ownerOf(path) : null
    if (owner === null) return null
    const is = owner === process.geteuid?.() ? 'is closed to this user by its mode' : `belongs to user ${owner}`
    return `${path} ${is}: run the command as the user of the daemon, who has to own all files of the folder ("chown")`
  }
}

function ownerOf(path: string): number | null {
  try {
    return statSync(path).uid
  } catch {
    return null
  }
}

function damaged(file: string | null, why: string, cause: unknown): MirrorError {
  const text = `${file ?? 'a database of the data folder'} is damaged (${why}). ${adviceOn(file, cause)}`
  return new MirrorError('corrupt', text, { cause })
}

function adviceOn(file: string | null, cause: unknown): string {
  const isLost = file !== null && cause instanceof Error && 'loss' in cause
  if (!isLost) return damageAdvice(file)
  const loss = cause.loss as Loss
  return basename(file) === 'webhooks.db' && loss !== 'other'
    ? `${PUT_BACK} Else start the daemon again, which makes a new one. ${LOST_WITH_INBOX}`
    : lossAdvice(dirname(file), loss)
}

/** Returns what to do about a lost mirror.db: there is nothing to repair. The same wherever it is said. */
export function lossAdvice(dataDir: string, loss: Loss): string {
  if (loss === 'other') return OTHER_ADVICE
  const begin = `${restoreAdvice(dataDir)} ${BEGIN_AGAIN}`
  return loss === 'missing' ? `${PUT_BACK} ${begin}` : begin
}

const PUT_BACK = 'If it was moved, put it back with its -wal and -shm files, and all goes on.'

const OTHER_ADVICE =
  'Stop the daemon. If the file is not the right one, put that back, or restore a backup into a new data folder ("patchmirror restore FILE"). Then start the daemon, which serves what is there.'

/** What a new database has of the one before. */
export const NEW_DATABASE =
  'a new database has a new identity, another secret of the relay, and of the keys the one in local.key alone'

const BEGIN_AGAIN = `Without one, stop the daemon if it runs, and start it again ("patchmirror serve"): it mirrors everything again; where there is no upstream, import a full bundle first ("patchmirror bundle import FILE"). Note that ${NEW_DATABASE}.`

function restoreAdvice(dataDir: string | null): string {
  const backup = dataDir === null ? null : describeLastBackup(dataDir)
  return backup === null
    ? 'If there is a backup, restore it into a new data folder ("patchmirror restore FILE").'
    : `Restore the last backup (${backup}) into a new data folder first: "patchmirror restore FILE".`
}

const FAILING_DISK =
  'Look at its disk and at the log of the system, then start the daemon again. If it stays, restore a backup on another disk.'

/**
 * What a repair keeps of a mirror.db whose structure is damaged, and what begins again: said alike wherever it is advised.
 */
const KEPT_BY_REPAIR =
  'It moves the file aside. It keeps local keys, the secret of links, the identity, the dates of records and the change log, as far as they can be read; all else is mirrored again, and the runs begin again'

const DERIVED = 'It is made from mirror.db: the daemon makes it again at its next start'

/** Returns what to do about a damaged database, the same for every command, log line and page; null: any of them. */
export function damageAdvice(file: string | null): string {
  const name = file === null ? 'mirror.db' : basename(file)
  if (name === 'webhooks.db')
    return `Stop the daemon and run "patchmirror doctor --data --repair": it moves the file aside. ${LOST_WITH_INBOX}`
  if (name.endsWith('.lock'))
    return 'End every Patchmirror that uses the folder, then remove the file: it holds no data.'
  if (name === 'findings.db') return `${DERIVED}, or "patchmirror doctor --data --repair" removes it.`
  if (name === 'views.db') return `${DERIVED}, or "patchmirror doctor --data --repair" does.`
  const loss = file === null ? null : seenLoss(file)
  if (file !== null && loss !== null) return lossAdvice(dirname(file), loss)
  return `${restoreAdvice(file === null ? null : dirname(file))} Else stop the daemon and run "patchmirror doctor --data --repair". ${KEPT_BY_REPAIR}.`
}

/** Null also where the file cannot be looked at: then it is not known to be lost. */
function seenLoss(path: string): Loss | null {
  try {
    return lossAt(path)
  } catch {
    return null
  }
}

const FOLDER = 'data.dir must be a folder that this user may write'
const CLOSED = `is not accessible to this user: run the command as the user of the daemon; ${FOLDER}`
/** What `fullness` says more of. */
const FULL = 'is full'
const STORAGE_FAULTS: Partial<Record<string, string>> = {
  SQLITE_FULL: FULL,
  SQLITE_IOERR_SHMSIZE: FULL, // the index of the write-ahead log has no room
  ENOSPC: FULL,
  EDQUOT: 'is over its quota',
  SQLITE_READONLY: `is not writable: ${FOLDER}`,
  SQLITE_READONLY_ROLLBACK:
    'has a change of a program that was killed, which only a writer can undo: run "patchmirror status" as the user that owns it',
  SQLITE_READONLY_DIRECTORY: `is not writable: ${FOLDER}`,
  SQLITE_READONLY_DBMOVED: 'was moved or deleted while in use',
  SQLITE_CANTOPEN: `cannot be opened: ${FOLDER}`,
  SQLITE_BUSY:
    'is busy: what uses it did not end in time, such as a run ("patchmirror status" shows it) or a program that has the file ' +
    'open; end that, or try again later',
  EACCES: CLOSED,
  EPERM: CLOSED,
  EROFS: `is on a read-only file system: ${FOLDER}`,
  ELOOP: 'cannot be reached: a link in its path leads back to itself',
  ENOTDIR: `is not a folder: ${FOLDER}`,
  EEXIST: `is not a folder: ${FOLDER}`,
  ENOENT: 'cannot be created, or is not there any more',
}
