import type { ReportCopy } from './migration-copy.ts'
import { userVersion } from './migrate.ts'
import { MIRROR_SCHEMA } from './schema/mirror.ts'
import { type Schema, newestOf } from './schema/schema.ts'
import { WEBHOOKS_SCHEMA } from './schema/webhooks.ts'
import { type Db, databasePath, hasLog, inboxPath, openInbox, openWriter } from './open.ts'
import { openAnyVersion } from './sqlite.ts'
import { MirrorError } from '../../base/errors.ts'
import { makeFile } from '../../base/files.ts'

/** A database of a data folder, as a backup names it. */
interface DatabaseKind {
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
    try {
      return userVersion(db) === newestOf(schema) && hasLog(path)
    } finally {
      db.close()
    }
  } catch {
    return false // opening it for writing says why
  }
}

/** Pages copied at once: 40 MB. */
const PAGES = 10_000

/**
 * Copies a database with SQLite's online backup into a new file, mode 0600, while other processes read and write.
 * Within a read transaction of `db` the copy is of its snapshot, and no commit restarts it.
 */
export async function copyDatabase(db: Db, path: string): Promise<void> {
  makeFile(path)
  await db.backup(path, { progress: () => PAGES })
}

/**
 * Migrates and checks a copied database, calls `use`, and leaves one file without a write-ahead log. Throws `corrupt`
 * when SQLite finds damage.
 */
export function checkCopy<T>(kind: DatabaseKind, dataDir: string, use: (db: Db) => T): T {
  const db = kind.open(dataDir, null)
  try {
    const found = db.pragma('quick_check(1)', { simple: true })
    if (found !== 'ok') throw new MirrorError('corrupt', `${kind.name} is damaged: ${String(found)}`)
    const result = use(db)
    db.pragma('journal_mode = DELETE')
    return result
  } finally {
    db.close()
  }
}

/** Tables that no bundle carries and no sync fetches: keys, this mirror's secret and identity, exports and imports. */
const PRIVATE_TABLES = [
  'local_key',
  'secret',
  'mirror_identity',
  'bundle_export',
  'bundle_import',
  'sqlite_sequence', // numbers that are never given twice
] as const

/** Writes the private tables of a mirror.db of this program's schema into a new database in another folder. */
export function copyPrivateTables(dataDir: string, to: string): void {
  const db = openWriter(to)
  try {
    db.prepare('ATTACH ? AS original').run(databasePath(dataDir))
    db.transaction(() => {
      for (const table of PRIVATE_TABLES) {
        db.exec(`DELETE FROM main.${table}`)
        db.exec(`INSERT INTO main.${table} SELECT * FROM original.${table}`)
      }
    })()
  } finally {
    db.close()
  }
}
