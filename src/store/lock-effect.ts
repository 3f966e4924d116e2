import { spawnSync } from 'node:child_process'
import { randomBytes } from 'node:crypto'
import { readFileSync, realpathSync, rmSync, statSync, writeFileSync } from 'node:fs'
import { join } from 'node:path'
import { MirrorError, systemCode } from '../base/errors.ts'
import { PRIVATE_FILE } from '../base/files.ts'
import { Database, SQLITE_MODULE } from './database/sqlite.ts'

/**
 * What a file system does with locks. `kept`: they keep other processes out; `refused`: none can be taken, as without a lock
 * manager (ENOLCK); `ignored`: every one is granted; `unknown`: it could not be tried.
 */
type LockEffect = 'kept' | 'refused' | 'ignored' | 'unknown'

/** Errors of SQLite for a lock that was not granted. On a file that no other program can know, no other program has it. */
const LOCK_ERRORS = /^SQLITE_(BUSY|PERM|PROTOCOL|IOERR_(LOCK|RDLOCK|UNLOCK|CHECKRESERVEDLOCK|BLOCKED))/

/** Reports whether a code of SQLite says that a lock was not granted. */
export function isLockError(code: string | undefined): boolean {
  return LOCK_ERRORS.test(code ?? '')
}

/** Tries locks in a folder, with a new file that is removed. */
export function probeLocks(folder: string): LockEffect {
  const path = join(folder, `.lock-probe-${randomBytes(6).toString('hex')}`)
  try {
    writeFileSync(path, '', { flag: 'wx', mode: PRIVATE_FILE })
  } catch {
    return 'unknown' // as on a read-only file system, which other messages name
  }
  try {
    return tryLock(path)
  } finally {
    rmSync(path, { force: true })
  }
}

function tryLock(path: string): LockEffect {
  const db = new Database(path, { timeout: 0 })
  try {
    db.pragma('journal_mode = MEMORY')
    db.exec('BEGIN EXCLUSIVE')
    return isListed(path) ? 'kept' : whatAnotherProcessGets(path)
  } catch (error) {
    return isLockError(systemCode(error)) ? 'refused' : 'unknown'
  } finally {
    db.close()
  }
}

/** Reports whether the kernel lists a lock of this process on a file. It lists none where it leaves locks to another program. */
function isListed(path: string): boolean {
  try {
    const { ino } = statSync(path)
    const own = new RegExp(`POSIX +ADVISORY +WRITE +${process.pid} [\\da-f]+:[\\da-f]+:${ino} `)
    return own.test(readFileSync('/proc/locks', 'utf8'))
  } catch {
    return false
  }
}

/** Exit code of the other process when it got the lock too. */
const TAKEN = 7
/** The longest time to wait for it, milliseconds. */
const CHILD_MS = 10_000
const CHILD = `
  const [module, path] = process.argv.slice(1)
  const db = new (require(module))(path, { timeout: 0 })
  db.pragma('journal_mode = MEMORY')
  try { db.exec('BEGIN EXCLUSIVE') } catch { process.exit(0) }
  process.exit(${TAKEN})`

/** Locks belong to processes, so only another one can see whether this one's has an effect. */
function whatAnotherProcessGets(path: string): LockEffect {
  const env = { ...process.env, NODE_OPTIONS: '' }
  const command = ['-e', CHILD, SQLITE_MODULE, path]
  const { status } = spawnSync(process.execPath, command, {
    env,
    stdio: 'ignore',
    timeout: CHILD_MS,
  })
  if (status === TAKEN) return 'ignored'
  return status === 0 ? 'kept' : 'unknown'
}

/** Returns what locks that do not work mean, and what to do; null where nothing is known to be wrong. */
export function describeLocks(folder: string, effect: LockEffect): string | null {
  const use = 'Use a folder on a local disk (data.dir).'
  if (effect === 'refused') return `locks do not work in ${folder}: its file system refuses every lock. ${use}`
  if (effect === 'ignored')
    return `locks have no effect in ${folder}: its file system grants every lock, so two processes could damage the data. ${use}`
  return null
}

/** Returns a `storage` error for a folder in which locks are known not to work; null for any other. */
export function lockFault(folder: string): MirrorError | null {
  const fault = describeLocks(folder, probeLocks(folder))
  return fault === null ? null : new MirrorError('storage', fault)
}

/** Throws that error. */
export function refuseUnlockable(folder: string): void {
  const fault = lockFault(folder)
  if (fault !== null) throw fault
}

/** Options of mounts with which locks stay on this machine, by the type of the file system. */
const LOCAL_LOCKS: readonly (readonly [type: RegExp, option: RegExp])[] = [
  [/^nfs4?$/, /^(nolock|local_lock=(all|posix))$/],
  [/^(cifs|smb3?)$/, /^nobrl$/],
  [/^(9p|fuse\..+|ocfs2|gfs2)$/, /^(nolock|localflocks|local_lock.*)$/],
]

/**
 * Returns the option with which a path is mounted so that other machines do not see its locks; null: none, or not known.
 * `mounts` is the text of /proc/self/mountinfo.
 */
export function localLockOption(path: string, mounts: string): string | null {
  let best = { length: -1, type: '', options: '' }
  for (const line of mounts.split('\n')) {
    const [, , , , place = '', ...rest] = line.split(' ')
    const point = place.replace(/\\(\d{3})/g, (_, code: string) => String.fromCharCode(Number.parseInt(code, 8)))
    const isAbove = point !== '' && (path === point || path.startsWith(point.replace(/\/?$/, '/')))
    const [type = '', , options = ''] = rest.slice(rest.indexOf('-') + 1)
    if (isAbove && point.length >= best.length) best = { length: point.length, type, options }
  }
  const wanted = LOCAL_LOCKS.find(([type]) => type.test(best.type))?.[1]
  return best.options.split(',').find((option) => wanted?.test(option) === true) ?? null
}

/** Returns a warning for a folder whose locks other machines do not see; null where none is known. */
export function warnOfLocalLocks(folder: string): string | null {
  try {
    const option = localLockOption(realpathSync(folder), readFileSync('/proc/self/mountinfo', 'utf8'))
    if (option === null) return null
    return `${folder} is mounted with ${option}: other machines do not see the locks there. Let only this machine use it, or use a local disk (data.dir).`
  } catch {
    return null // not on Linux
  }
}

/** Throws `storage` where locks in a folder do not work; passes a warning on where other machines do not see them. */
export function checkLocks(folder: string, warn: (text: string) => void): void {
  refuseUnlockable(folder)
  const local = warnOfLocalLocks(folder)
  if (local !== null) warn(local)
}
