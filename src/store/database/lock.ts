import { randomBytes } from 'node:crypto'
import {
  closeSync,
  constants,
  ftruncateSync,
  openSync,
  readFileSync,
  readdirSync,
  readlinkSync,
  realpathSync,
  statSync,
  writeSync,
} from 'node:fs'
import { basename, dirname, join } from 'node:path'
import { MirrorError, systemCode } from '../../base/errors.ts'
import { Database } from './sqlite.ts'
import { namingFaults } from './faults.ts'
import { refuseDataWrites } from './unfinished.ts'
import { PRIVATE_FILE, isPresent, makeFile, makeFolder } from '../../base/files.ts'
import { isFull } from '../disk-state.ts'
import { refuseUnlockable } from '../lock-effect.ts'

type LockName = 'serve' | 'sync' | 'secrets' | 'export' | 'views'

/** An acquired lock; a second release has no effect. */
export interface Lock {
  release(): void
}

/**
 * Acquires a lock on the data folder. It is a lock of the operating system, taken through SQLite, so it ends with the
 * process in any case: there is no stale lock file to clean up. Throws `locked` with the holder's process id when
 * another process has it.
 */
export function acquireLock(dataDir: string, name: LockName): Lock {
  const path = join(dataDir, `${name}.lock`)
  const db = namingFaults(dataDir, () => {
    refuseDataWrites(dataDir)
    makeFolder(dataDir)
    if (isHeldRemoved(path)) throw alreadyLocked(dataDir, name)
    makeFile(path)
    return new Database(path, { timeout: 0 })
  })
  try {
    begin(db)
    note(`${path}.pid`, String(process.pid))
    if (name === 'serve') note(join(dataDir, INSTANCE_FILE), '') // what the last daemon wrote is not about this one
  } catch (error) {
    db.close()
    refuseUnlockable(dataDir) // ENOLCK is SQLITE_BUSY too, and then no process has the lock
    if (systemCode(error) !== 'SQLITE_BUSY') return namingFaults(dataDir, () => rethrow(error))
    throw alreadyLocked(dataDir, name)
  }
  return {
    release() {
      if (db.open) db.close()
    },
  }
}

function alreadyLocked(dataDir: string, name: LockName): MirrorError {
  const what = `${PURPOSE[name]} (${holder(join(dataDir, `${name}.lock`))}): ${dataDir}`
  return new MirrorError('locked', name === 'sync' ? `${what}${WAIT}` : what)
}

/**
 * Reports whether the process that noted itself as the holder of a lock still has the file of it open, which was removed since: its
 * lock is on no file that another process can try. False where the system does not tell, as it does on Linux alone.
 */
function isHeldRemoved(path: string): boolean {
  try {
    const removed = `${realpathSync(dirname(path))}/${basename(path)} (deleted)`
    const open = `/proc/${readFileSync(`${path}.pid`, 'utf8')}/fd`
    return readdirSync(open).some((file) => isLinkTo(join(open, file), removed))
  } catch {
    return false // no such process, or one of another user
  }
}

function isLinkTo(path: string, target: string): boolean {
  try {
    return readlinkSync(path) === target
  } catch {
    return false // the process has closed it since
  }
}

/** Acquires the same kind of lock on any file, which is created and stays; null when another program has it. Throws the system's error. */
export function lockFile(path: string): Lock | null {
  makeFile(path)
  const db = new Database(path, { timeout: 0 })
  try {
    begin(db)
    return { release: () => void db.close() }
  } catch (error) {
    db.close()
    refuseUnlockable(dirname(path))
    if (systemCode(error) === 'SQLITE_BUSY') return null
    throw error
  }
}

/** Reports whether another process has a lock, without acquiring it or creating anything. */
export function isLocked(dataDir: string, name: LockName): boolean {
  const path = join(dataDir, `${name}.lock`)
  if (isHeldRemoved(path)) return true
  if (!namingFaults(dataDir, () => isPresent(path))) return false
  const db = namingFaults(dataDir, () => new Database(path, { readonly: true, timeout: 0 }))
  try {
    db.prepare('SELECT 1 FROM sqlite_master').get()
    return false
  } catch (error) {
    refuseUnlockable(dataDir)
    if (systemCode(error) !== 'SQLITE_BUSY') return namingFaults(dataDir, () => rethrow(error))
    return true
  } finally {
    db.close()
  }
}

/** Returns the process that has a lock, as `process 4711`; null when none has it. */
export function lockHolder(dataDir: string, name: LockName): string | null {
  return isLocked(dataDir, name) ? holder(join(dataDir, `${name}.lock`)) : null
}

const INSTANCE_FILE = 'serve.instance'

/** Creates a random id, 16 hex digits, for the daemon with the `serve` lock and writes it to the data folder. */
export function announceInstance(dataDir: string): string {
  const instance = randomBytes(8).toString('hex')
  writeInstance(dataDir, `${instance} 0`)
  return instance
}

/**
 * Writes the port that the daemon listens on (0: a socket), which database it has open by then, and its process again, for which there
 * was no room on a full disk.
 */
export function announceAddress(dataDir: string, instance: string, { port }: { port: number }): void {
  const path = join(dataDir, 'mirror.db')
  const known = noted(dataDir, instance)
  const file = known?.file ?? fileNumber(path)
  const log = known === null ? fileNumber(`${path}-wal`) : known.log
  writeInstance(dataDir, `${instance} ${port} ${file ?? ''} ${log ?? ''}`)
}

function writeInstance(dataDir: string, text: string): void {
  namingFaults(dataDir, () => {
    note(join(dataDir, INSTANCE_FILE), `${text}\n`)
    note(join(dataDir, 'serve.lock.pid'), String(process.pid))
  })
}

/**
 * Returns the daemon that serves this data folder now, and its port; null if there is none. A copy of the folder has
 * none.
 */
export function servingDaemon(dataDir: string): { instance: string; port: number } | null {
  if (!isLocked(dataDir, 'serve')) return null
  try {
    const [instance = '', port = ''] = readFileSync(join(dataDir, INSTANCE_FILE), 'utf8').split(/\s/)
    return instance === '' ? null : { instance, port: Number(port) } // empty: the disk was full
  } catch {
    return null // it is starting
  }
}

/** Reports whether a daemon serves this data folder now, or did before. */
export function hasServed(dataDir: string): boolean {
  return (statSync(join(dataDir, INSTANCE_FILE), { throwIfNoEntry: false })?.size ?? 0) > 0
}

/** Returns the number (inode) of a file, which no other file has while it is open; null: there is no file. */
export function fileNumber(path: string): bigint | null {
  return statSync(path, { bigint: true, throwIfNoEntry: false })?.ino ?? null
}

/** Returns the number of the database that the daemon noted as its own, whether it still runs or not; null: none is noted. */
export function notedDatabase(dataDir: string): bigint | null {
  return noted(dataDir, null)?.file ?? null
}

/**
 * Reports whether mirror.db is another file than the last daemon had open, beside the write-ahead log that was that one's: SQLite
 * would write it over the other database, and destroy that. A copy of the whole folder has another log too.
 */
export function isBesideForeignLog(dataDir: string): boolean {
  const known = noted(dataDir, null)
  const path = join(dataDir, 'mirror.db')
  if (known === null || known.log === null) return false
  return fileNumber(`${path}-wal`) === known.log && fileNumber(path) !== known.file
}

/** Forgets the log of the last daemon where another mirror.db is opened without it: any log is that one's from then on, also of the same number. */
export function forgetForeignLog(dataDir: string): void {
  const known = noted(dataDir, null)
  if (known === null || known.log === null || fileNumber(join(dataDir, 'mirror.db')) === known.file) return
  const path = join(dataDir, INSTANCE_FILE)
  namingFaults(dataDir, () => note(path, `${readFileSync(path, 'utf8').split(/\s/, 3).join(' ')}\n`))
}

/** The numbers of a database and of its write-ahead log. */
interface NotedFiles {
  readonly file: bigint
  readonly log: bigint | null
}

/** Returns what one instance alone noted; null: what any did. */
function noted(dataDir: string, instance: string | null): NotedFiles | null {
  try {
    const [of, , file = '', log = ''] = readFileSync(join(dataDir, INSTANCE_FILE), 'utf8').split(/\s/)
    if ((instance !== null && of !== instance) || !/^\d+$/.test(file)) return null
    return { file: BigInt(file), log: /^\d+$/.test(log) ? BigInt(log) : null }
  } catch {
    return null
  }
}

/** Returns the id of the process that serves this data folder; null if there is none. */
export function servingProcess(dataDir: string): number | null {
  if (!isLocked(dataDir, 'serve')) return null
  try {
    const pid = Number(readFileSync(join(dataDir, 'serve.lock.pid'), 'utf8'))
    return Number.isSafeInteger(pid) && pid > 1 ? pid : null
  } catch {
    return null // it is starting
  }
}

const PURPOSE: Record<LockName, string> = {
  serve: 'another Patchmirror already serves this data folder: use that one, end it first, or set another data.dir',
  // It may be a thread of this process: the number of the process says which it is.
  sync: 'a run, an import or a repair is writing to this data folder',
  views: 'the views of this data folder are being built already',
  secrets: 'another command is changing the webhook secrets',
  export: 'an export from this data folder is under way already',
}

/** What to do where another process writes. */
const WAIT = '; it may be a run of the daemon: "patchmirror status" shows it; try again when it has ended'

function holder(path: string): string {
  try {
    return `process ${readFileSync(`${path}.pid`, 'utf8') || 'unknown'}`
  } catch {
    return 'process unknown'
  }
}

function rethrow(error: unknown): never {
  throw error
}

/** Acquires the lock. Without a journal file nothing is written, so it needs no room on the disk. */
function begin(db: InstanceType<typeof Database>): void {
  db.pragma('journal_mode = MEMORY')
  db.exec('BEGIN EXCLUSIVE')
}

/**
 * Writes who has a lock over what the file had, which needs no more room than that. On a full disk the file may stay
 * empty: the lock is the same without it.
 */
function note(path: string, text: string): void {
  try {
    const file = openSync(path, constants.O_WRONLY | constants.O_CREAT, PRIVATE_FILE)
    try {
      ftruncateSync(file, writeSync(file, text))
    } finally {
      closeSync(file)
    }
  } catch (error) {
    if (!isFull(error)) throw error
  }
}
