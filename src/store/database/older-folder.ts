import { existsSync } from 'node:fs'
import { MirrorError } from '../../core/errors.ts'
import { createLedgerReader } from '../replication/ledger.ts'
import { databasePath, openReader } from './open.ts'

/** Whether there is a database that `openReader` does not read, since it is of an earlier version that no writer has migrated. */
export function isOlderFolder(dataDir: string): boolean {
  if (!existsSync(databasePath(dataDir))) return false
  const db = openReader(dataDir)
  db?.close()
  return db === null
}

/**
 * Why `openReader` gave no database to read, and what to do: it is of an earlier version; else there is none, of which
 * the caller says what it means.
 */
export function whyUnread(dataDir: string, none: string): MirrorError {
  const older =
    `the database in ${dataDir} was written by an earlier version of Patchmirror and is not migrated yet: ` +
    'start the daemon ("patchmirror serve"), which migrates it'
  return new MirrorError('not_ready', isOlderFolder(dataDir) ? older : none)
}

/** Whether a bundle was ever imported into a data folder, of an earlier version too. */
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
