import type { CatalogPage } from './lists.ts'
import { FACETS } from './list-query.ts'
import type { Db } from '../database/open.ts'
import { queries } from '../database/query.ts'

/** An item found by a walk, with the values of its facets. */
export interface StagedEntry {
  id: string
  body: Buffer
  sha: Buffer
  facets: readonly (string | null)[]
}

/** Ordinals reserved per page; a page can have a million entries. */
export const PAGE_STRIDE = 1_000_000

/** The facet columns of an entry, for SQL. */
export const FACET_COLUMNS = Array.from({ length: FACETS }, (_, at) => `facet${at + 1}`).join(', ')

/**
 * Stages the pages of a walk until they are published, in temporary tables: a slow network does not lock the database.
 * They are lost with the connection; a walk is cheap to repeat.
 */
export function createCatalogStaging(db: Db) {
  const query = queries(db)
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
  const turned = (facet: number) =>
    db
      .prepare<[string, string, string], string>(
        `SELECT s.id FROM staged_entry s JOIN catalog_list l ON l.path = s.path
           JOIN catalog_entry e ON e.list = l.id AND e.id = s.id
         WHERE s.path = ? AND lower(s.facet${facet + 1}) = ? AND coalesce(lower(e.facet${facet + 1}), '') <> ?`,
      )
      .pluck()
  const stage = db.transaction((path: string, row: CatalogPage, entries: readonly StagedEntry[]): void => {
    page.run({ ...row, path, kept: 0 })
    entries.forEach(({ id, sha, body, facets }, at) => {
      const values = Array.from({ length: FACETS }, (_, facet) => facets[facet] ?? null)
      entry.run(path, row.number * PAGE_STRIDE + at, id, sha, body, ...values)
    })
  })
  return {
    /** Stages a page with new content. */
    stagePage: (path: string, row: CatalogPage, entries: readonly StagedEntry[]): void => stage(path, row, entries),
    /** The item of a staged page with new content; null: there is none of this id. */
    readStaged: query.value<[path: string, id: string], Buffer>(
      'SELECT body FROM staged_entry WHERE path = ? AND id = ?',
    ),
    /** Stages a page that equals the stored one: its entries stay unchanged. */
    keepPage: (path: string, row: CatalogPage): void => {
      page.run({ ...row, path, kept: 1 })
    },
    /** Deletes the validators of a walk's pages, so that the next walk does not take them as unchanged. */
    forgetPages: query.run<[path: string]>(
      "UPDATE staged_page SET etag = NULL, lastModified = NULL, sha256 = x'' WHERE path = ?",
    ),
    /** Ids of the staged items of a list whose facet, by its number from 0, has a value now and is stored with another. */
    listTurned: (path: string, facet: number, value: string): string[] => turned(facet).all(path, value, value),
    /** Discards a walk, as when it is restarted. */
    dropWalk: (path: string): void => {
      dropPages.run(path)
      dropEntries.run(path)
    },
  }
}
