import { existsSync, lstatSync, readdirSync, rmdirSync, statSync } from 'node:fs'
import { dirname, join } from 'node:path'
import { shownBytes } from '../../base/disk-space.ts'
import { MirrorError, messageOf, systemCode } from '../../base/errors.ts'
import { isPresent, makeFolder } from '../../base/files.ts'
import { closedAt } from '../../store/database/faults.ts'
import { describeLocks, probeLocks, warnOfLocalLocks } from '../../store/lock-effect.ts'
import { databasePath } from '../../store/database/open.ts'
import { type Finding, failure, fine, skipped, warning } from './check.ts'
import type { Examined } from './world.ts'

const NO_FOLDER = 'the data folder does not exist yet'

/** Tries whether this user can work in the data folder, and others cannot. */
export function rights({ world, config }: Examined): Finding {
  const { dir } = config.data
  const action = `Make ${dir} (data.dir) a folder that this user may read and write, on a disk that is not mounted read-only, or set data.dir to another one.`
  try {
    isPresent(dir)
  } catch (error) {
    const isBelowFile = systemCode(error) === 'ENOTDIR' // which is said below
    if (!isBelowFile) return failure(`this user cannot look up ${dir} (${messageOf(error)})`, action)
  }
  if (!existsSync(dir)) {
    const why = whyNotMade(dir)
    return why === null
      ? fine(`${dir} does not exist yet: the first sync or start makes it`)
      : failure(`${dir} does not exist, and cannot be made: ${why}`, action)
  }
  if (!statSync(dir).isDirectory()) return failure(`${dir} is not a folder`, action)
  const { state, reason } = world.probeStorage(dir, true)
  if (state === 'failing') return failure(reason ?? `${dir} cannot be written to`, action)
  refuseClosed(dir)
  const locks = describeLocks(dir, probeLocks(dir))
  if (locks !== null) return failure(locks, 'Move the data folder to a local disk, and set data.dir.')
  const local = warnOfLocalLocks(dir)
  if (local !== null) return warning(local, 'Let only one machine use the data folder.')
  const open = openFiles(dir)
  if (open.length === 0) return fine(`${dir} can be read and written`)
  return warning(
    `other users of this machine may read or write ${open.join(', ')} in ${dir}`,
    `Start the daemon, which removes these rights, or run: chmod -R go= ${dir}`,
  )
}

/** Returns why a folder that is not there cannot be made, which only a try shows: what it makes is removed again. Null: it can be. */
function whyNotMade(dir: string): string | null {
  const missing = missingFolders(dir)
  try {
    makeFolder(dir)
    return existsSync(dir) ? null : 'it is a symbolic link to a place that does not exist'
  } catch (error) {
    return messageOf(error)
  } finally {
    missing.forEach(removeEmpty)
  }
}

/** Returns a folder and those above it as far as they are not there, the innermost first. */
function missingFolders(dir: string): string[] {
  return existsSync(dir) ? [] : [dir, ...missingFolders(dirname(dir))]
}

/** Removes a folder that has nothing: where another program has begun to use it, it stays. */
function removeEmpty(dir: string): void {
  try {
    rmdirSync(dir)
  } catch {
    // it was not made, or is in use
  }
}

/** What the program writes in the data folder, and in the folders below it. */
const WRITTEN = /^(derived|downloads|views)$|^serve\.|\.(db|lock)(-wal|-shm|\.pid)?$/

/** Throws `storage` for a file or folder that this user may not use, as one that a command of another user made. */
function refuseClosed(dir: string): void {
  for (const entry of readdirSync(dir, { withFileTypes: true })) {
    if (!WRITTEN.test(entry.name)) continue
    const path = join(dir, entry.name)
    const closed = closedAt(path)
    if (closed !== null) throw new MirrorError('storage', closed)
    if (entry.isDirectory()) refuseClosed(path)
  }
}

/** Files with private content: rights of group and others on them are too many. */
const PRIVATE = /^((mirror|webhooks)\.db|local\.key$|webhook-secrets\.json$)/

function openFiles(dir: string): string[] {
  return readdirSync(dir).filter((name) => {
    if (!PRIVATE.test(name)) return false
    try {
      const stat = lstatSync(join(dir, name))
      return stat.isFile() && (stat.mode & 0o077) !== 0
    } catch (error) {
      if (systemCode(error) === 'ENOENT') return false // SQLite removes its log when the last process closes it
      throw error
    }
  })
}

/** File systems over a network, on which SQLite's locks and write-ahead log are not reliable; by the type of statfs(2). */
const NETWORK_TYPES: Readonly<Record<number, string>> = {
  0x6969: 'NFS',
  0x517b: 'SMB',
  0xff534d42: 'CIFS',
  0xfe534d42: 'SMB2',
  0x01021997: '9p',
  0x65735546: 'FUSE',
  0x00c36400: 'Ceph',
  0x0bd00bd0: 'Lustre',
  0x47504653: 'GPFS',
  0x5346414f: 'AFS',
  0x7461636f: 'OCFS2',
}
/** File systems whose content ends with the machine or the container. */
const PASSING_TYPES: Readonly<Record<number, string>> = {
  0x01021994: 'tmpfs',
  0x858458f6: 'ramfs',
}

/** Names a file system that a database should not be on. */
export function fileSystem({ world, config }: Examined): Finding {
  const { dir } = config.data
  if (!existsSync(dir)) return skipped(NO_FOLDER)
  let type: number
  try {
    type = world.fileSystemType(dir) >>> 0
  } catch (error) {
    return skipped(`this system does not report it (${messageOf(error)})`)
  }
  const network = NETWORK_TYPES[type]
  if (network !== undefined)
    return warning(
      `${dir} is on ${network}, where locks and the write-ahead log of SQLite may fail: the database can be damaged`,
      'Move the data folder (data.dir) to a disk of this machine.',
    )
  const passing = PASSING_TYPES[type]
  if (passing !== undefined)
    return warning(
      `${dir} is on ${passing}: everything in it is lost when this machine or container ends`,
      'Move the data folder (data.dir) to a disk, or a volume that outlives the container.',
    )
  return fine(`a local file system (type 0x${type.toString(16)})`)
}

/** Free bytes below which the next full sync may not find room, beside the size of the database itself. */
const LOW_BYTES = 100_000_000

/** Compares the free space with what the next run may need. */
export function space({ world, config }: Examined): Finding {
  const { dir } = config.data
  if (!existsSync(dir)) return skipped(NO_FOLDER)
  const { state, reason, freeBytes } = world.probeStorage(dir, true)
  if (state !== 'ok')
    return failure(
      reason ?? `the disk of ${dir} is full`,
      'Make room there, or move the data folder (data.dir) to a larger disk.',
    )
  if (freeBytes === null) return skipped('this system does not report free space')
  const path = databasePath(dir)
  const database = existsSync(path) ? statSync(path).size : 0
  const found = `${shownBytes(freeBytes)} are free, the database has ${shownBytes(database)}`
  if (freeBytes >= Math.max(LOW_BYTES, database)) return fine(found)
  return warning(
    `${found}: an archive, a backup or a migration may need as much again`,
    'Free some space, or move the data folder (data.dir) to a larger disk.',
  )
}
