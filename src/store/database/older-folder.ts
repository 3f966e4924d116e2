import { MirrorError } from '../../core/errors.ts'
import { isPresent } from '../../core/files.ts'
import { createLedgerReader } from '../replication/ledger.ts'
import { databasePath, guarded, openReader } from './open.ts'

/**
 * Reports whether there is a database that `openReader` does not open because no writer has migrated it from an earlier
 * version.
 */
export function isOlderFolder(dataDir: string): boolean {
  if (!guarded(dataDir, () => isPresent(databasePath(dataDir)))) return false
  const db = openReader(dataDir)
  db?.close()
  return db === null
}

/**
 * Returns why `openReader` opened no database, and what to do: the database is of an earlier version; else there is
 * none, with the caller's message `none`.
 */
export function whyUnread(dataDir: string, none: string): MirrorError {
  const older =
    `the database in ${dataDir} was written by an earlier version of Patchmirror and is not migrated yet: ` +
    'start the daemon ("patchmirror serve"), which migrates it'
  return new MirrorError('not_ready', isOlderFolder(dataDir) ? older : none)
}

/** Reports whether a bundle was ever imported into a data folder, also into one of an earlier version. */
export function hasImported(dataDir: string): boolean {
  const db = openReader(dataDir, { older: true })
  if (db === null) return false
  try {
    const ledger = db.prepare("SELECT 1 FROM sqlite_master WHERE name = 'bundle_import'").get()
    return ledger !== undefined && createLedgerReader(db).readLastImport() !== null
  } finally {
    db.close()
  }
}
