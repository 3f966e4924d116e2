import { CARRIED } from './catalog.ts'
import { FACET_COLUMNS, PAGE_STRIDE } from './catalog-staging.ts'
import type { Db } from './database.ts'

/** Items of a walk (?) that a list (?) does not hold as they are now. */
const NEW = `FROM staged_entry s WHERE s.path = ? AND NOT EXISTS
  (SELECT 1 FROM catalog_entry e WHERE e.list = ? AND e.id = s.id AND e.sha = s.sha)`

/** What a walk found otherwise than it is held. Only for the connection that walks: what is walked is staged there. */
export function createCatalogMoves(db: Db) {
  const ids = db.prepare<[string, number], string>(`SELECT s.id ${NEW}`).pluck()
  const pairs = db
    .prepare<[number, string, number], [Buffer, Buffer | null]>(
      `SELECT s.body, (SELECT e.body FROM catalog_entry e WHERE e.list = ? AND e.id = s.id) ${NEW} ORDER BY s.ordinal`,
    )
    .raw()
  const bodies = db
    .prepare<[string, number, number, string, string], Buffer>(
      `SELECT s.body ${NEW}
       UNION ALL
       SELECT e.body FROM catalog_entry e WHERE e.list = ?
         AND e.ordinal / 1000000 NOT IN (SELECT number FROM staged_page WHERE path = ? AND kept = 1)
         AND NOT EXISTS (SELECT 1 FROM staged_entry s WHERE s.path = ? AND s.id = e.id AND s.sha = e.sha)`,
    )
    .pluck()
  return {
    /** Bodies of the items that are new or changed, and of those as they are held, or were. */
    eachMoved: (listId: number, path: string) => bodies.iterate(path, listId, listId, path, path),
    /** Ids of the items that are new or changed. */
    eachMovedId: (listId: number, path: string) => ids.iterate(path, listId),
    /** Bodies of the items that are new or changed, each with the one that is held under its id. */
    eachMovedPair: (listId: number, path: string) => pairs.iterate(listId, path, listId),
  }
}

/** Entries of a list (?) that a walk (?, ?) did not meet. */
const GONE = `WHERE e.list = ?
  AND e.ordinal / 1000000 NOT IN (SELECT number FROM staged_page WHERE path = ? AND kept = 1)
  AND NOT EXISTS (SELECT 1 FROM staged_entry s WHERE s.path = ? AND s.id = e.id)`

/** What a walk did not meet. Only for the connection that walks. */
export function createCatalogGone(db: Db) {
  const sql = {
    gone: db
      .prepare<[number, string, string], number>(`SELECT count(*) FROM catalog_entry e ${GONE}`)
      .pluck(),
    goneIds: db
      .prepare<[number, string, string], string>(
        `SELECT e.id FROM catalog_entry e ${GONE} ORDER BY e.id`,
      )
      .pluck(),
    carry: db.prepare(
      `INSERT INTO staged_entry SELECT ?, ? + row_number() OVER (ORDER BY e.ordinal) - 1, e.id, e.sha, e.body,
         ${FACET_COLUMNS} FROM catalog_entry e ${GONE}`,
    ),
    carriedPage: db.prepare(
      `INSERT INTO staged_page (path, number, cursor, next, etag, lastModified, sha256, entries, kept)
       VALUES (?, ?, ?, NULL, NULL, NULL, x'', ?, 0)`,
    ),
  }
  return {
    /** How many entries that are held the walk did not meet. */
    countGone: (listId: number, path: string): number => sql.gone.get(listId, path, path) ?? 0,
    /** Their ids, in order. */
    eachGone: (listId: number, path: string) => sql.goneIds.iterate(listId, path, path),
    /** Stages what a list holds and a walk did not meet as a further page of the walk, of this number. */
    carryEntries(listId: number, path: string, number: number): void {
      const count = sql.carry.run(path, number * PAGE_STRIDE, listId, path, path).changes
      if (count > 0) sql.carriedPage.run(path, number, CARRIED, count)
    },
  }
}
