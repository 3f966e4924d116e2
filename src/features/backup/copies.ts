import { type DatabaseKind, type Db, databasePath, openWriter } from '../../store/database/open.ts'
import { MirrorError } from '../../base/errors.ts'
import { makeFile } from '../../base/files.ts'
import { closing } from '../../base/closing.ts'

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
  return closing(db, () => {
    const found = db.pragma('quick_check(1)', { simple: true })
    if (found !== 'ok') throw new MirrorError('corrupt', `${kind.name} is damaged: ${String(found)}`)
    const result = use(db)
    db.pragma('journal_mode = DELETE')
    return result
  })
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
  closing(db, () => {
    db.prepare('ATTACH ? AS original').run(databasePath(dataDir))
    db.transaction(() => {
      for (const table of PRIVATE_TABLES) {
        db.exec(`DELETE FROM main.${table}`)
        db.exec(`INSERT INTO main.${table} SELECT * FROM original.${table}`)
      }
    })()
  })
}
