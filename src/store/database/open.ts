import { randomBytes } from 'node:crypto'
import { closeSync, existsSync, openSync, readSync, renameSync, rmSync, statSync } from 'node:fs'
import { basename, dirname, join } from 'node:path'
import { MirrorError, messageOf, systemCode } from '../../base/errors.ts'
import { isPresent, makeFile, makeFolder, tightenFolder } from '../../base/files.ts'
import { forgetVerification } from '../notes.ts'
import { isLockError, lockFault } from '../lock-effect.ts'
import { type Database, type Db, compileWhenUsed, connect, openAnyVersion } from './sqlite.ts'
import { lossAt, namingFaults } from './faults.ts'
import { refuseForeignJournal } from '../foreign-journal.ts'
import { forgetForeignLog, isBesideForeignLog } from './lock.ts'
import { refuseBesideLoss } from './loss.ts'
import { migrate, userVersion } from './migrate.ts'
import { type ReportCopy, copyBeforeMigration, printCopy } from './migration-copy.ts'
import { hasLogged, refuseForeignSchema } from './own-schema.ts'
import { MIRROR_SCHEMA } from './schema/mirror.ts'
import { type Schema, newestOf } from './schema/schema.ts'
import { VIEWS_SCHEMA } from './schema/views.ts'
import { WEBHOOKS_SCHEMA } from './schema/webhooks.ts'
import { refuseDataWrites, refuseUnfinished } from './unfinished.ts'
import { closing } from '../../base/closing.ts'

export type { Db } from './sqlite.ts'

/** Returns the database file of a data folder. */
export function databasePath(dataDir: string): string {
  return join(dataDir, 'mirror.db')
}

/** Returns the database file of received webhooks and relayed events. */
export function inboxPath(dataDir: string): string {
  return join(dataDir, 'webhooks.db')
}

/** Returns the folder of the archives that are rebuilt from the database; safe to delete while nothing runs. */
export function derivedDir(dataDir: string): string {
  return join(dataDir, 'derived')
}

/**
 * Opens the database for writing; creates and migrates it as needed. WAL, so that readers never wait;
 * `synchronous=NORMAL`: a power loss may lose the last commit but never damages one, and a sync is repeatable. Throws
 * `schema` for a database of a newer program, `corrupt` for a damaged one and beside a daemon that has another, `storage` for an unusable folder.
 */
export function openWriter(dataDir: string, report: ReportCopy = printCopy): Db {
  return namingFaults(dataDir, () => {
    refuseDataWrites(dataDir)
    refuseBesideLoss(dataDir)
    makeFolder(derivedDir(dataDir))
    tightenFolder(dataDir)
    const path = databasePath(dataDir)
    const onNew = (): void => forgetMadeFrom(dataDir)
    return openReady(path, { schema: MIRROR_SCHEMA, timeout: 10_000, report, onNew }, (db) => {
      db.pragma('synchronous = NORMAL')
      db.pragma('cache_size = -8192')
      db.pragma('journal_size_limit = 67108864')
      db.pragma('temp_store = FILE')
      db.function('random_bytes', (length) => randomBytes(Number(length)))
    })
  })
}

/** Removes what was made from a mirror.db that is not there any more, and what was found in it: it is not about another one. */
export function forgetMadeFrom(dataDir: string): void {
  rmSync(derivedDir(dataDir), { recursive: true, force: true })
  makeFolder(derivedDir(dataDir))
  forgetVerification(dataDir)
}

/** Size of the inbox's write-ahead log at which a commit copies it, bytes; usually it is copied earlier, while idle. */
export const INBOX_LOG_BYTES = 16 * 2 ** 20
const PAGE_BYTES = 4096

/**
 * Opens webhooks.db for writing; creates and migrates it as needed. `synchronous=FULL`: committed data is on disk, since
 * a sender that got a success response does not send again. Several processes may open it. Throws as `openWriter`.
 */
export function openInbox(dataDir: string, report: ReportCopy = printCopy): Db {
  const path = inboxPath(dataDir)
  const open = (): Db => {
    refuseDataWrites(dataDir)
    makeFolder(dataDir)
    return openReady(path, { schema: WEBHOOKS_SCHEMA, timeout: 5_000, report }, (db) => {
      db.pragma('synchronous = FULL')
      db.pragma('cache_size = -4096')
      db.pragma(`wal_autocheckpoint = ${INBOX_LOG_BYTES / PAGE_BYTES}`)
      db.pragma('journal_size_limit = 67108864')
    })
  }
  return namingFaults(dataDir, open, path)
}

/** How a database is made ready: its schema, and how long locks of others are waited for, milliseconds. */
interface Ready {
  readonly schema: Schema
  readonly timeout: number
  readonly report: ReportCopy
  /** Called before a new one gets its tables. */
  readonly onNew?: () => void
}

/**
 * Opens a database for writing and makes it what every reader expects: of this program's schema, and with a write-ahead log.
 * Restored and copied databases have a rollback journal.
 */
function openReady(path: string, { schema, timeout, report, onNew }: Ready, set: (db: Db) => void): Db {
  if (hasLostLog(path)) keepLog(path, report)
  if (!existsSync(path)) makeFile(path)
  if (basename(path) === 'mirror.db') forgetForeignLog(dirname(path))
  refuseForeignLog(path, schema)
  const db = connectTrying(path, { timeout })
  try {
    refuseForeignSchema(db, schema)
    db.pragma('journal_mode = WAL')
    set(db)
    migrate(db, schema, (version) => {
      if (version === 0) onNew?.()
      else copyBeforeMigration(path, version, settleCopy, report)
    })
    return leaveIndex(compileWhenUsed(db))
  } catch (error) {
    db.close()
    throw error
  }
}

/** Reports whether the write-ahead log of a lost or replaced database is left. Any connection would remove it, or write it over the other one. */
export function hasLostLog(path: string): boolean {
  const isOther = basename(path) === 'mirror.db' && isBesideForeignLog(dirname(path))
  return hasLogged(path) && (isOther || lossAt(path) !== null)
}

/** Moves that log aside, and reports where it is. */
export function keepLog(path: string, report: ReportCopy): void {
  const kept = `${path}.lost-${new Date().toISOString().replace(/[:.]/g, '-')}-wal`
  renameSync(`${path}-wal`, kept)
  report?.(
    `${path} was lost, and its log is kept as ${kept}: if you put that database back, put it back too, as ${path}-wal`,
  )
}

/**
 * Throws as `refuseForeignJournal`, and as `refuseForeignSchema` on a connection that writes nothing: one that writes copies the
 * write-ahead log into the database when it is closed, and a log of another database would destroy it.
 */
function refuseForeignLog(path: string, schema: Schema): void {
  refuseForeignJournal(path)
  if (!isPresent(`${path}-journal`) && hasLogged(path)) openRead(path, schema, 2048, true)?.close()
}

/**
 * Connects, and tries a lock without waiting first. Throws `storage` where the file system refuses every lock: SQLite takes that for a
 * lock of another process, for which it would wait.
 */
function connectTrying(path: string, options: { timeout: number; readonly?: boolean }): Database {
  const db = connect(path, { ...options, timeout: 0 })
  try {
    userVersion(db)
  } catch (error) {
    if (!isLockError(systemCode(error))) return db // what else is wrong, the caller meets
    const fault = lockFault(dirname(path))
    if (fault === null) return db
    db.close()
    throw fault
  } finally {
    if (db.open) db.pragma(`busy_timeout = ${options.timeout}`)
  }
  return db
}

/** The bytes of a database's header that say whether it has a write-ahead log. */
const LOG_MARK = { at: 18, value: 2 }

/** Reports whether a database has a write-ahead log. Throws the system's error. */
function hasLog(path: string): boolean {
  const file = openSync(path, 'r')
  try {
    const byte = Buffer.alloc(1)
    return readSync(file, byte, 0, 1, LOG_MARK.at) === 1 && byte[0] === LOG_MARK.value
  } finally {
    closeSync(file)
  }
}

/**
 * Gives a database a write-ahead log before it is read: a reader of one without would keep its own process from writing.
 * A change that a killed process left in a rollback journal is undone, which no reader can do. Where that cannot be done now, as on a read-only disk or for another user's file, it is read as it is.
 */
function giveLog(path: string, schema: Schema): void {
  try {
    if (lossAt(path) !== null || hasLostLog(path) || statSync(path).uid !== process.geteuid?.()) return
    if (hasLog(path) && !isPresent(`${path}-journal`)) return
    refuseForeignLog(path, schema)
    const db = connect(path, { timeout: 0, fileMustExist: true })
    closing(db, () => {
      refuseForeignSchema(db, schema)
      db.pragma('journal_mode = WAL')
    })
  } catch {
    // Opening it says what is wrong with it.
  }
}

/** Checks a copied database and makes it one file, without a write-ahead log. Throws `corrupt` when it is damaged. */
function settleCopy(path: string): void {
  const db = connect(path)
  closing(db, () => {
    const found = db.pragma('quick_check(1)', { simple: true })
    if (found !== 'ok') throw new MirrorError('corrupt', `${path} is damaged: ${String(found)}`)
    db.pragma('journal_mode = DELETE')
  })
}

/** A database of a data folder, as a backup names it. */
export interface DatabaseKind {
  /** Its file's name in a data folder. */
  readonly name: 'mirror.db' | 'webhooks.db'
  readonly schema: Schema
  readonly pathIn: (dataDir: string) => string
  readonly open: (dataDir: string, report?: ReportCopy) => Db
}

/** The databases of a data folder; webhooks.db first: it refers to what is in mirror.db, which is copied later. */
export const DATABASES: readonly DatabaseKind[] = [
  { name: 'webhooks.db', schema: WEBHOOKS_SCHEMA, pathIn: inboxPath, open: openInbox },
  { name: 'mirror.db', schema: MIRROR_SCHEMA, pathIn: databasePath, open: openWriter },
]

/**
 * Makes a data folder ready before anything of it is read: both databases are there, of this program's schema, with a write-ahead
 * log. mirror.db comes first: when it cannot be made ready, nothing was migrated. A webhooks.db that cannot is left to the inbox
 * thread, which reports it and answers deliveries with 503, while reads go on. `report` gets a sentence on each copy from before.
 */
export function readyFolder(dataDir: string, report: ReportCopy): void {
  for (const { name, schema, pathIn, open } of DATABASES.toReversed()) {
    if (isReady(pathIn(dataDir), schema)) continue
    try {
      open(dataDir, report).close()
    } catch (error) {
      if (name === 'mirror.db') throw error
    }
  }
}

/** Reports whether a database is ready, without opening it for writing, whose end would copy its log. */
function isReady(path: string, schema: Schema): boolean {
  try {
    const db = openAnyVersion(path)
    return closing(db, () => userVersion(db) === newestOf(schema) && hasLog(path))
  } catch {
    return false // opening it for writing says why
  }
}

/** Opens webhooks.db read-only; null if there is none yet, or it is not migrated yet. */
export function openInboxReader(dataDir: string): Db | null {
  const path = inboxPath(dataDir)
  const open = (): Db | null => {
    refuseUnfinished(dataDir)
    if (!isPresent(path)) return null
    giveLog(path, WEBHOOKS_SCHEMA)
    return openRead(path, WEBHOOKS_SCHEMA, 2048)
  }
  return namingFaults(dataDir, open, path)
}

/**
 * Opens the database read-only. Null if there is none yet, it has no tables, or no writer has migrated it to this program's schema;
 * with `older` an older one is opened, and tables and columns of later steps are missing. `cacheKb` bounds the pages that it keeps.
 */
export function openReader(dataDir: string, { older = false, cacheKb = 16_384 } = {}): Db | null {
  const path = databasePath(dataDir)
  return namingFaults(dataDir, () => {
    refuseUnfinished(dataDir)
    if (!isPresent(path)) return null
    giveLog(path, MIRROR_SCHEMA)
    return openRead(path, MIRROR_SCHEMA, cacheKb, older)
  })
}

/**
 * Opens the database of views that are being built. No journal: unfinished views are discarded, and the code that
 * finishes them syncs the file. `cacheKb` bounds the pages that it keeps, and what it sorts in memory.
 */
export function openViewsWriter(path: string, { cacheKb = 16_384 } = {}): Db {
  makeFile(path)
  const db = connect(path)
  try {
    refuseForeignSchema(db, VIEWS_SCHEMA)
    db.pragma('journal_mode = OFF')
    db.pragma('synchronous = OFF')
    db.pragma(`cache_size = -${cacheKb}`)
    db.pragma('temp_store = FILE')
    migrate(db, VIEWS_SCHEMA)
    return compileWhenUsed(db)
  } catch (error) {
    db.close()
    throw error
  }
}

/** Opens the finished database of views. Throws `corrupt` if it is missing, damaged, or of another version. */
export function openViewsReader(path: string): Db {
  try {
    const db = openRead(path, VIEWS_SCHEMA, 8192)
    if (db !== null) return db
  } catch (error) {
    const why = messageOf(error)
    throw new MirrorError('corrupt', `the views cannot be read: ${why}`, { cause: error })
  }
  throw new MirrorError('corrupt', 'the views are of another version')
}

function openRead(path: string, schema: Schema, cacheKilobytes: number, older = false): Db | null {
  if (hasLostLog(path)) return null
  const db = connectTrying(path, { readonly: true, timeout: 5_000 })
  try {
    db.pragma(`cache_size = -${cacheKilobytes}`)
    db.pragma('mmap_size = 0') // if a mapped file is truncated, SIGBUS ends the process
    refuseForeignSchema(db, schema)
    const version = userVersion(db)
    if (version === newestOf(schema) || (older && version > 0)) return compileWhenUsed(db)
    db.close()
    return null
  } catch (error) {
    db.close()
    throw error
  }
}

/**
 * Makes a connection that writes leave the index of the write-ahead log (`-shm`, 32 KB) in the folder, which SQLite removes
 * with the last such connection: on a full disk no database without it can be opened, not even to be read. A connection
 * that only reads creates it, and removes nothing.
 */
function leaveIndex(db: Db): Db {
  const close = db.close.bind(db)
  const path = db.name
  return Object.assign(db, {
    close() {
      const closed = close()
      try {
        if (!isPresent(`${path}-shm`)) createIndex(path)
      } catch {
        // the database was moved away, or the disk is full
      }
      return closed
    },
  })
}

function createIndex(path: string): void {
  const reader = openAnyVersion(path)
  closing(reader, () => userVersion(reader))
}
