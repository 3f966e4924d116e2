import { join } from 'node:path'
import Database from 'better-sqlite3'

function rowOf(dir: string, sql: string): unknown {
  const db = new Database(join(dir, 'mirror.db'), { readonly: true })
  try {
    return db.prepare(sql).get()
  } finally {
    db.close()
  }
}

interface CatalogCounts {
  readonly entries: number
  readonly answers: number
  readonly documents: number
}

/** Counts the stored list entries, answers and documents of the catalog of a data folder. */
export function countCatalog(dir: string): CatalogCounts {
  return rowOf(
    dir,
    `SELECT (SELECT count(*) FROM catalog_entry) AS entries, (SELECT count(*) FROM catalog_answer WHERE status = 200) AS answers,
       (SELECT count(*) FROM catalog_document) AS documents`,
  ) as CatalogCounts
}

/** Counts the superseded versions of records of a data folder, and the bodies that they have. */
export function countSuperseded(dir: string): { versions: number; bodies: number } {
  return rowOf(
    dir,
    `SELECT (SELECT count(*) FROM osv_superseded) AS versions,
       (SELECT count(*) FROM osv_body WHERE rowid IN (SELECT body FROM osv_superseded)) AS bodies`,
  ) as { versions: number; bodies: number }
}
