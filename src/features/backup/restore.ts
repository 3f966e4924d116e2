import { existsSync, readdirSync, renameSync, rmSync } from 'node:fs'
import { basename, join } from 'node:path'
import { atEnd } from '../../store/temporary.ts'
import { refuseFullDisk, reserveFor } from '../../base/disk-space.ts'
import { MirrorError } from '../../base/errors.ts'
import { makeFolder, publishFile, syncFolder } from '../../base/files.ts'
import { DAY_MS } from '../../base/time.ts'
import { nameStorageError, namingFaults } from '../../store/database/faults.ts'
import { type Lock, lockFile } from '../../store/database/lock.ts'
import { type Db, inboxPath, openInbox, openWriter } from '../../store/database/open.ts'
import { refuseForeignRoot, restoringDir } from '../../store/database/unfinished.ts'
import { type DroppedEvents, forgetRelayed, renumberChanges, settleOldEvents } from '../../store/given-numbers.ts'
import { RELAY_DAYS } from '../../store/webhooks/outbox.ts'
import { createLedgerWriter } from '../../store/replication/ledger.ts'
import { type BackupManifest, FILE_NAMES, notABackup } from './format.ts'
import { openBackup } from './read.ts'
import { checkCopies } from './write.ts'
import { closing } from '../../base/closing.ts'

/** What is restored, and where to. */
interface RestoreOptions {
  readonly path: string
  /** Empty, or missing. */
  readonly dataDir: string
  /** Whether the mirror gets another identity: the old one may still be running. */
  readonly newIdentity: boolean
  /** Unix milliseconds. */
  readonly now: () => number
  /** Called before each step, by tests that stop at one. */
  readonly onStep?: (step: string) => void
}

/** What was restored. */
interface RestoreReport {
  readonly manifest: BackupManifest
  readonly identity: string
  readonly dropped: DroppedEvents
}

/**
 * Restores a backup into an empty data folder. Everything is extracted and verified in a folder `.restoring` within it;
 * as long as that folder exists, no command opens the databases, so a restore that was stopped anywhere is never
 * served and can be repeated. Throws `usage` for a folder with other files, `corrupt` or `schema` for the backup.
 */
export async function restoreBackup(options: RestoreOptions): Promise<RestoreReport> {
  const { path, dataDir, onStep = () => undefined } = options
  refuseForeignRoot(dataDir)
  const backup = await openBackup(path)
  const staging = restoringDir(dataDir)
  let lock: Lock | null = null
  let isWhole = false
  const forget = atEnd(() => {
    if (lock !== null && !isWhole) rmSync(staging, { recursive: true, force: true })
  })
  try {
    const { manifest } = backup
    lock = namingFaults(dataDir, () => prepareFolder(dataDir, staging))
    await refuseFullDisk(dataDir, neededBytes(manifest), 'Free some space and run it again').catch(
      abandon(dataDir, staging),
    )
    onStep('extract')
    await backup.extract(staging).catch(abandon(dataDir, staging))
    onStep('check')
    const made = await Promise.resolve()
      .then(() => check(options, manifest, staging))
      .catch(abandon(dataDir, staging))
    isWhole = true // a signal from here on is heard when everything is published
    onStep('publish')
    namingFaults(dataDir, () => publish(dataDir, staging, manifest, onStep))
    return { manifest, ...made }
  } finally {
    forget()
    lock?.release()
    await backup.close()
  }
}

/**
 * Removes what a failed restore wrote before anything was published, so that the folder is empty again. A fault of the disk
 * is named with the folder.
 */
function abandon(dataDir: string, staging: string): (error: unknown) => never {
  return (error) => {
    rmSync(staging, { recursive: true, force: true })
    throw nameStorageError(error, dataDir)
  }
}

/** What a restore that was stopped while it published may have left, beside its staging folder. */
const LEFT_BY_RESTORE: ReadonlySet<string> = new Set([...FILE_NAMES, '.restored'])

/** A new file system has a folder of its own at its root. */
function isOwn(name: string): boolean {
  return name !== 'lost+found'
}

/** The file of the staging folder whose lock the running restore has. */
const LOCK = 'lock'

/**
 * Creates the staging folder, as the first thing in an empty data folder; removes what a stopped restore left. Returns the lock by
 * which no other restore does the same.
 */
function prepareFolder(dataDir: string, staging: string): Lock {
  makeFolder(dataDir)
  const isLeft = existsSync(staging)
  const refuseOthers = (): void => {
    const found = readdirSync(dataDir).filter((name) => isOwn(name) && join(dataDir, name) !== staging)
    const others = found.filter((name) => !isLeft || !LEFT_BY_RESTORE.has(name))
    if (others.length === 0) return
    throw new MirrorError(
      'usage',
      `${dataDir} is not empty (${others.slice(0, 3).join(', ')}): restore into a new data folder (data.dir), or move this one away`,
    )
  }
  refuseOthers()
  if (!isLeft) makeFolder(staging)
  const lock = lockFile(join(staging, LOCK)) // it fails where another restore has just ended
  if (lock === null)
    throw new MirrorError('locked', `another restore into ${dataDir} is running: wait until it has ended`)
  try {
    refuseOthers() // it may have ended between the two
  } catch (error) {
    rmSync(staging, { recursive: true })
    lock.release()
    throw error
  }
  const kept = [LOCK, basename(staging)]
  for (const folder of [dataDir, staging])
    for (const name of readdirSync(folder)) {
      if (isOwn(name) && !kept.includes(name)) rmSync(join(folder, name), { recursive: true })
    }
  syncFolder(dataDir)
  return lock
}

function neededBytes({ files }: BackupManifest): number {
  const bytes = files.reduce((sum, file) => sum + file.bytes, 0)
  return bytes + reserveFor(bytes, 4 * 2 ** 20, 2 ** 30)
}

/** Checks the extracted databases; what they are to announce, and their identity if a new one is wanted, begin again. */
function check(options: RestoreOptions, manifest: BackupManifest, staging: string): Omit<RestoreReport, 'manifest'> {
  try {
    checkCopies(staging, manifest)
  } catch (error) {
    if (error instanceof MirrorError && (error.code === 'corrupt' || error.code === 'schema'))
      throw notABackup(options.path, error.message, error)
    throw error
  }
  const now = options.now()
  const at = { now, before: now - RELAY_DAYS * DAY_MS } // what waits since before is not announced any more
  const identity = inOneFile(openWriter(staging), (db) => {
    renumberChanges(db, at)
    return options.newIdentity ? createLedgerWriter(db).renewIdentity() : manifest.identity
  })
  if (!existsSync(inboxPath(staging))) return { identity, dropped: { relayed: 0, received: 0 } }
  const dropped = inOneFile(openInbox(staging), (db) => {
    if (!(Date.parse(manifest.createdAt) >= at.before)) forgetRelayed(db)
    return settleOldEvents(db, at)
  })
  return { identity, dropped }
}

/** Changes a database, which is a single file afterwards. */
function inOneFile<T>(db: Db, change: (db: Db) => T): T {
  return closing(db, () => {
    const result = change(db)
    db.pragma('journal_mode = DELETE')
    return result
  })
}

/** Moves the files into the data folder, mirror.db last; removing the staging folder publishes them all at once. */
function publish(dataDir: string, staging: string, { files }: BackupManifest, onStep: (step: string) => void): void {
  for (const { name } of files) {
    onStep(`publish ${name}`)
    publishFile(join(staging, name), join(dataDir, name))
  }
  onStep('finish')
  // Renamed first, so that a process killed while the rest is removed leaves no unfinished restore behind.
  const rest = join(dataDir, '.restored')
  rmSync(join(staging, 'derived'), { recursive: true, force: true })
  renameSync(staging, rest)
  syncFolder(dataDir)
  rmSync(rest, { recursive: true })
}
