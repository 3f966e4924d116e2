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
