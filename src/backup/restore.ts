import { existsSync, readdirSync, renameSync, rmSync } from 'node:fs'
import { join } from 'node:path'
import { refuseFullDisk, reserveFor } from '../core/disk-space.ts'
import { MirrorError } from '../core/errors.ts'
import { makeFolder, publishFile, syncFolder } from '../core/files.ts'
import { nameStorageError } from '../store/database/faults.ts'
import { guarded, openWriter } from '../store/database/open.ts'
import { refuseForeignRoot, restoringDir } from '../store/database/unfinished.ts'
import { createLedgerWriter } from '../store/replication/ledger.ts'
import { type BackupManifest, FILE_NAMES, notABackup } from './format.ts'
import { openBackup } from './read.ts'
import { checkCopies } from './write.ts'

/** What is restored, and where to. */
interface RestoreOptions {
  readonly path: string
  /** Empty, or missing. */
  readonly dataDir: string
  /** Whether the mirror gets another identity: the old one may still be running. */
  readonly newIdentity: boolean
  /** Called before each step, by tests that stop at one. */
  readonly onStep?: (step: string) => void
}

/** What was restored. */
interface RestoreReport {
  readonly manifest: BackupManifest
  readonly identity: string
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
  try {
    const { manifest } = backup
    const staging = guarded(dataDir, () => prepareFolder(dataDir))
    await refuseFullDisk(dataDir, neededBytes(manifest), 'Free some space and run it again').catch(
      abandon(dataDir, staging),
    )
    onStep('extract')
    await backup.extract(staging).catch(abandon(dataDir, staging))
    onStep('check')
    const identity = await Promise.resolve()
      .then(() => check(options, manifest, staging))
      .catch(abandon(dataDir, staging))
    onStep('publish')
    guarded(dataDir, () => publish(dataDir, staging, manifest, onStep))
    return { manifest, identity }
  } finally {
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

/** Creates the staging folder, as the first thing in an empty data folder; removes what a stopped restore left. */
function prepareFolder(dataDir: string): string {
  const staging = restoringDir(dataDir)
  const found = existsSync(dataDir) ? readdirSync(dataDir).filter(isOwn) : []
  const others = existsSync(staging)
    ? found.filter((name) => !LEFT_BY_RESTORE.has(name) && join(dataDir, name) !== staging)
    : found
  if (others.length > 0)
    throw new MirrorError(
      'usage',
      `${dataDir} is not empty (${others.slice(0, 3).join(', ')}): restore into a new data folder (data.dir), or move this one away`,
    )
  for (const name of found)
    if (join(dataDir, name) !== staging) rmSync(join(dataDir, name), { recursive: true })
  rmSync(join(staging), { recursive: true, force: true })
  makeFolder(staging)
  syncFolder(dataDir)
  return staging
}

function neededBytes({ files }: BackupManifest): number {
  const bytes = files.reduce((sum, file) => sum + file.bytes, 0)
  return bytes + reserveFor(bytes, 4 * 2 ** 20, 2 ** 30)
}

/** Checks the extracted databases and gives the mirror its new identity; returns the identity. */
function check({ path, newIdentity }: RestoreOptions, manifest: BackupManifest, staging: string) {
  try {
    checkCopies(staging, manifest)
  } catch (error) {
    if (error instanceof MirrorError && error.code === 'corrupt')
      throw notABackup(path, error.message, error)
    throw error
  }
  if (!newIdentity) return manifest.identity
  const db = openWriter(staging)
  try {
    const identity = createLedgerWriter(db).renewIdentity()
    db.pragma('journal_mode = DELETE')
    return identity
  } finally {
    db.close()
  }
}

/** Moves the files into the data folder, mirror.db last; removing the staging folder publishes them all at once. */
function publish(
  dataDir: string,
  staging: string,
  { files }: BackupManifest,
  onStep: (step: string) => void,
): void {
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
