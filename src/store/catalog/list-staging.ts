import type { CatalogPage } from './lists.ts'
import { FACETS } from './list-query.ts'
import type { Db } from '../database/open.ts'

/** An item as a walk found it, with the values of the fields its list can be narrowed by. */
export interface StagedEntry {
  id: string
  body: Buffer
  sha: Buffer
  facets: readonly (string | null)[]
}

/** Places a page's first entry; a page can hold a million. */
export const PAGE_STRIDE = 1_000_000

/** `?, ?, …` for the facets of an entry. */
export const FACET_COLUMNS = Array.from({ length: FACETS }, (_, at) => `facet${at + 1}`).join(', ')

/**
 * The pages of a walk until they are published: temporary tables, so that nothing locks the database while the network
 * is slow. Gone with the connection; a walk is cheap to repeat.
 */
export function createCatalogStaging(db: Db) {
  db.exec(
    `CREATE TEMP TABLE IF NOT EXISTS staged_page (
       path TEXT, number INTEGER, cursor TEXT, next TEXT, etag TEXT, lastModified TEXT, sha256 BLOB, entries INTEGER,
       kept INTEGER, PRIMARY KEY (path, number)
     );
     CREATE TEMP TABLE IF NOT EXISTS staged_entry (
       path TEXT, ordinal INTEGER, id TEXT, sha BLOB, body BLOB, ${FACET_COLUMNS}
     );
     CREATE INDEX IF NOT EXISTS temp.staged_entry_path ON staged_entry (path, ordinal);
     CREATE INDEX IF NOT EXISTS temp.staged_entry_id ON staged_entry (path, id);`,
  )
  const page = db.prepare(
    `INSERT INTO staged_page (path, number, cursor, next, etag, lastModified, sha256, entries, kept)
     VALUES (@path, @number, @cursor, @next, @etag, @lastModified, @sha256, @entries, @kept)`,
  )
  const marks = Array.from({ length: FACETS }, () => '?').join(', ')
  const entry = db.prepare(`INSERT INTO staged_entry VALUES (?, ?, ?, ?, ?, ${marks})`)
  const dropPages = db.prepare('DELETE FROM staged_page WHERE path = ?')
  const dropEntries = db.prepare('DELETE FROM staged_entry WHERE path = ?')
  const stage = db.transaction(
    (path: string, row: CatalogPage, entries: readonly StagedEntry[]): void => {
      page.run({ ...row, path, kept: 0 })
      entries.forEach(({ id, sha, body, facets }, at) => {
        const values = Array.from({ length: FACETS }, (_, facet) => facets[facet] ?? null)
        entry.run(path, row.number * PAGE_STRIDE + at, id, sha, body, ...values)
      })
    },
  )
  return {
    /** Stages a page that came anew. */
    stagePage: (path: string, row: CatalogPage, entries: readonly StagedEntry[]): void =>
      stage(path, row, entries),
    /** Stages a page that is as it is held: its entries stay where they are. */
    keepPage: (path: string, row: CatalogPage): void => {
      page.run({ ...row, path, kept: 1 })
    },
    /** Forgets a walk, as when it begins anew. */
    dropWalk: (path: string): void => {
      dropPages.run(path)
      dropEntries.run(path)
    },
  }
}
