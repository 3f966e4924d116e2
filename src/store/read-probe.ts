import { lossAt, lostDatabase } from './database/faults.ts'
import { fileNumber } from './database/lock.ts'
import { type Db, databasePath, openReader } from './database/open.ts'
import { closing } from '../base/closing.ts'

/** One row of each table that answers are made from; `length` reads no bytes of a large document. */
const ROWS: readonly string[] = [
  'SELECT * FROM snapshot',
  'SELECT * FROM run ORDER BY id DESC LIMIT 1',
  'SELECT * FROM change_log ORDER BY id DESC LIMIT 1',
  'SELECT * FROM local_key ORDER BY id DESC LIMIT 1',
  'SELECT * FROM secret',
  'SELECT path, length(body) FROM document',
  'SELECT id, sha256 FROM osv_record ORDER BY id LIMIT 1',
  'SELECT id, sha256 FROM osv_record ORDER BY id DESC LIMIT 1',
  'SELECT path, length(body) FROM catalog_answer ORDER BY path LIMIT 1',
  'SELECT path FROM catalog_list ORDER BY id LIMIT 1',
  'SELECT id, length(body) FROM catalog_entry ORDER BY rowid LIMIT 1',
]

/** How many records are read whole, at random places. */
const RECORDS = 4
const RECORD = 'SELECT bytes FROM osv_body WHERE rowid >= abs(random() % (SELECT max(rowid) + 1 FROM osv_body)) LIMIT 1'

/**
 * Reads a little of every table on a connection of its own, so that no page comes from a cache. Throws what a request would
 * meet: SQLite's error of a damaged page, a missing table, a disk that cannot be read. `known`: the number of the database before
 * (`fileNumber`), so that none and another are faults too. Returns its number; null where there is none.
 */
export function probeReads(dataDir: string, known: bigint | null): bigint | null {
  const path = databasePath(dataDir)
  const loss = known === null ? null : lossAt(path, known)
  if (loss !== null) throw lostDatabase(path, loss)
  const db = openReader(dataDir)
  if (db === null) return null
  return closing(db, () => {
    db.pragma('cache_size = -256')
    readAll(db)
    return known ?? fileNumber(path)
  })
}

/** Throws the error for a database that was there before, and is not now. */
export function throwGone(dataDir: string): never {
  const path = databasePath(dataDir)
  throw lostDatabase(path, lossAt(path) ?? 'empty')
}

function readAll(db: Db): void {
  for (const row of ROWS) db.prepare(row).all()
  for (let left = RECORDS; left > 0; left--) db.prepare(RECORD).get()
}

/** Reports whether a repair that is complete began after this time, unix milliseconds: what was damaged before was fetched again. */
export function wasRepairedSince(dataDir: string, since: number): boolean {
  const db = openReader(dataDir)
  if (db === null) return false
  const repaired = db.prepare<[number], number>(
    "SELECT 1 FROM run WHERE kind = 'repair' AND state = 'complete' AND started_at >= ? LIMIT 1",
  )
  return closing(db, () => repaired.get(since) !== undefined)
}
