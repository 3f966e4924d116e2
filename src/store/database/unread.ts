import { join } from 'node:path'
import { MirrorError } from '../../base/errors.ts'
import { isPresent } from '../../base/files.ts'
import { createLedgerReader } from '../replication/ledger.ts'
import { NEW_DATABASE, lossAdvice, lossAt, namingFaults } from './faults.ts'
import { databasePath, hasLostLog, openReader } from './open.ts'
import { closing } from '../../base/closing.ts'

/**
 * Reports whether there is a database that `openReader` does not open: it is empty, or no writer has migrated it to this program's
 * schema.
 */
export function hasUnreadDatabase(dataDir: string): boolean {
  if (!namingFaults(dataDir, () => isPresent(databasePath(dataDir)))) return false
  const db = openReader(dataDir)
  db?.close()
  return db === null
}

/**
 * Returns why `openReader` opened no database, and what to do: the file is empty, or not migrated; else there is none, with the
 * caller's message `none`.
 */
export function whyUnread(dataDir: string, none: string): MirrorError {
  const older =
    `the database in ${dataDir} is not migrated to the schema of this version yet: ` +
    'start the daemon ("patchmirror serve"), which migrates it'
  if (isEmptyFile(dataDir))
    return new MirrorError('not_ready', `${databasePath(dataDir)} ${EMPTY_FILE}. ${EMPTY_FILE_ADVICE}`)
  if (hasLostLog(databasePath(dataDir))) return new MirrorError('not_ready', `${databasePath(dataDir)} ${OTHER_LOG}`)
  return new MirrorError('not_ready', hasUnreadDatabase(dataDir) ? older : `${none}${lossIn(dataDir)}`)
}

/** Files that are made after the database, of which one is left where it was lost. */
const MADE_AFTER = ['local.key', 'webhooks.db']

function lossIn(dataDir: string): string {
  const missing = describeMissing(dataDir)
  return missing === null ? '' : `. ${missing}. ${lossAdvice(dataDir, 'missing')}`
}

/** Says that the folder had a database, which may be lost; null: it is there, or nothing shows that there was one. */
export function describeMissing(dataDir: string): string | null {
  const isThere = (name: string): boolean => namingFaults(dataDir, () => isPresent(join(dataDir, name)))
  const left = isThere('mirror.db') ? undefined : MADE_AFTER.find(isThere)
  return left === undefined ? null : `mirror.db is missing, and ${left} is left: it may have been lost`
}

/** Reports whether the database is a file without content: no writer has made anything of it, or all of it was lost. */
export function isEmptyFile(dataDir: string): boolean {
  return lossAt(databasePath(dataDir)) === 'empty'
}

const OTHER_LOG =
  'was put in the place of another, whose log (mirror.db-wal) is left: start the daemon ("patchmirror serve"), which moves that aside'

/** What an empty database is. */
export const EMPTY_FILE = 'is empty (0 bytes): nothing was ever stored in it, or its content was lost'

/** What to do about one. */
export const EMPTY_FILE_ADVICE = `If something was stored, restore a backup into a new data folder ("patchmirror restore FILE"). Else start the daemon ("patchmirror serve"), which mirrors again: ${NEW_DATABASE}.`

/** Reports whether a bundle was ever imported into a data folder, also into one that is not migrated yet. */
export function hasImported(dataDir: string): boolean {
  const db = openReader(dataDir, { older: true })
  return db !== null && closing(db, () => createLedgerReader(db).readLastImport() !== null)
}
