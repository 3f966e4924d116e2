import { createCatalogListReader, CARRIED } from './lists.ts'
import { createCatalogStaging, FACET_COLUMNS, PAGE_STRIDE } from './list-staging.ts'
import type { Db } from '../database/open.ts'
import { createDateFloorReader } from '../feeds/date-floor.ts'
import { nextChanged } from '../feeds/documents.ts'
import type { ChangeTracker } from '../changes/tracker.ts'

/**
 * Creates writes of the catalog's lists, inside the transaction that publishes; changes are recorded for the change log.
 */
export function createCatalogListWriter(db: Db, tracker: ChangeTracker) {
  const staging = createCatalogStaging(db) // before the statements that read its tables
  const sql = prepareListWrites(db)
  const reader = createCatalogListReader(db)
  const { lastServed } = createDateFloorReader(db)
  return {
    ...reader,
    ...createCatalogMoves(db),
    ...createCatalogGone(db),
    staging,
    /** `[id, sha, body]` of every item of a walk, unchanged pages included, in order. */
    eachWalked: (listId: number | null, path: string) => sql.walked.iterate(listId ?? -1, path, path),
    /** Publishes a walk as the list's content; writes only the pages with new content. Returns the number of entries. */
    replaceList(path: string, resource: string, frame: string, fields: readonly string[], now: number): number {
      const stored = reader.readList(path)
      const changed = nextChanged(lastServed(stored?.changed ?? null), null, now)
      tracker.record(path, stored === null ? null : String(stored.changed), String(changed))
      const id = stored?.id ?? Number(sql.list.run(path, resource, frame, changed).lastInsertRowid)
      sql.dropEntries.run(id, path, path)
      sql.dropPages.run(id)
      sql.entries.run(id, path)
      sql.pages.run(id, path)
      sql.invalidatePages.run(id)
      sql.updateList.run(frame, resource, JSON.stringify(fields), id, changed, id)
      return Number(sql.count.get(id))
    },
    /** Computes the facets of a list's items again with `read`; writes only those that differ. */
    rereadFacets(path: string, read: (body: Buffer) => readonly (string | null)[]): void {
      const list = reader.readList(path)
      if (list === null) return
      let ordinal = -1
      for (;;) {
        const rows = sql.facetRows.all(list.id, ordinal, REREAD)
        for (const [rowid, at, body, ...stored] of rows) {
          ordinal = at
          const facets = read(body)
          const values = stored.map((_, facet) => facets[facet] ?? null)
          if (values.some((value, facet) => value !== stored[facet])) sql.setFacets.run(...values, rowid)
        }
        if (rows.length < REREAD) return
      }
    },
    ...createConfirmations(db),
    removeList(path: string): void {
      const stored = reader.readList(path)
      if (stored === null) return
      tracker.record(path, String(stored.changed), null)
      sql.clearEntries.run(stored.id)
      sql.dropPages.run(stored.id)
      sql.removeList.run(stored.id)
    },
  }
}

/** Items read at a time, each with its body. */
const REREAD = 500

type FacetRow = [rowid: number, ordinal: number, body: Buffer, ...facets: (string | null)[]]

/** The facet columns of a table, for SQL. */
const facetsOf = (table: string): string => FACET_COLUMNS.replaceAll(/facet/g, `${table}.$&`)

function prepareListWrites(db: Db) {
  return {
    walked: db
      .prepare<[number, string, string], [string, Buffer, Buffer]>(
        `SELECT id, sha, body FROM (
           SELECT e.ordinal, e.id, e.sha, e.body FROM catalog_entry e WHERE e.list = ? AND e.ordinal / 1000000 IN
             (SELECT number FROM staged_page WHERE path = ? AND kept = 1)
           UNION ALL SELECT ordinal, id, sha, body FROM staged_entry WHERE path = ?) ORDER BY ordinal`,
      )
      .raw(),
    list: db.prepare('INSERT INTO catalog_list (path, resource, frame, entries, changed) VALUES (?, ?, ?, 0, ?)'),
    updateList: db.prepare(
      `UPDATE catalog_list SET frame = ?, resource = ?, fields = ?,
         entries = (SELECT count(*) FROM catalog_entry WHERE list = ?), changed = ? WHERE id = ?`,
    ),
    count: db.prepare<[number], number>('SELECT entries FROM catalog_list WHERE id = ?').pluck(),
    // Not those that the walk found unchanged at the same place: where only a page's total differs, no item is written.
    // The bodies are compared as well, so that a damaged one is replaced.
    // Of two items of one id the first is stored, as it is of a list that was not stored before.
    dropEntries: db.prepare(
      `DELETE FROM catalog_entry AS e WHERE e.list = ? AND e.ordinal / 1000000 NOT IN
         (SELECT number FROM staged_page WHERE path = ? AND kept = 1)
       AND (SELECT s.ordinal = e.ordinal AND s.sha = e.sha AND s.body = e.body AND (${facetsOf('s')}) IS (${facetsOf('e')})
         FROM staged_entry s INDEXED BY staged_entry_id WHERE s.path = ? AND s.id = e.id
         ORDER BY s.ordinal LIMIT 1) IS NOT TRUE`,
    ),
    dropPages: db.prepare('DELETE FROM catalog_page WHERE list = ?'),
    entries: db.prepare(
      `INSERT OR IGNORE INTO catalog_entry (list, ordinal, id, sha, body, ${FACET_COLUMNS})
       SELECT ?, ordinal, id, sha, body, ${FACET_COLUMNS} FROM staged_entry WHERE path = ? ORDER BY ordinal`,
    ),
    pages: db.prepare(
      `INSERT INTO catalog_page (list, number, cursor, next, etag, last_modified, sha256, entries)
       SELECT ?, number, cursor, next, etag, lastModified, sha256, entries FROM staged_page WHERE path = ?`,
    ),
    // An item that moves while the list is walked occurs on two pages and is stored from one. The validators of the
    // other page are deleted: it must be read again when the first one loses the item.
    invalidatePages: db.prepare(
      `UPDATE catalog_page SET etag = NULL, last_modified = NULL, sha256 = x''
       WHERE list = ? AND entries <> (
         SELECT count(*) FROM catalog_entry e WHERE e.list = catalog_page.list
           AND e.ordinal >= catalog_page.number * 1000000 AND e.ordinal < (catalog_page.number + 1) * 1000000)`,
    ),
    facetRows: db
      .prepare<[number, number, number], FacetRow>(
        `SELECT rowid, ordinal, body, ${FACET_COLUMNS} FROM catalog_entry
         WHERE list = ? AND ordinal > ? ORDER BY ordinal LIMIT ?`,
      )
      .raw(),
    setFacets: db.prepare(
      `UPDATE catalog_entry SET ${FACET_COLUMNS.replaceAll(/facet\d+/g, '$& = ?')} WHERE rowid = ?`,
    ),
    clearEntries: db.prepare('DELETE FROM catalog_entry WHERE list = ?'),
    removeList: db.prepare('DELETE FROM catalog_list WHERE id = ?'),
  }
}

/** Creates writes of what a walk confirmed of lists; nothing that is served changes, except ages. */
function createConfirmations(db: Db) {
  const confirm = db.prepare('UPDATE catalog_list SET confirmed_at = ? WHERE path = ?')
  const evidence = db.prepare('UPDATE catalog_list SET evidence = ? WHERE path = ? AND evidence IS NOT ?')
  return {
    /** Stores when lists were walked: path and upstream's date, Unix milliseconds. */
    confirmLists: (lists: readonly (readonly [path: string, at: number])[]): void => {
      for (const [path, at] of lists) confirm.run(at, path)
    },
    /** Stores on what the completeness of lists rests: path and JSON; writes only what differs. */
    noteEvidence: (lists: readonly (readonly [path: string, evidence: string])[]): void => {
      for (const [path, text] of lists) evidence.run(text, path, text)
    },
  }
}

/** SQL: items of a walk (?) that are new or changed in comparison with a list (?). */
const NEW = `FROM staged_entry s WHERE s.path = ? AND NOT EXISTS
  (SELECT 1 FROM catalog_entry e WHERE e.list = ? AND e.id = s.id AND e.sha = s.sha)`

/** Creates reads of the differences between a walk and the stored list, on the connection that staged the walk. */
function createCatalogMoves(db: Db) {
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
    /** Bodies of the items that are new or changed, and the stored bodies of those that changed or were removed. */
    eachMoved: (listId: number, path: string) => bodies.iterate(path, listId, listId, path, path),
    /** Ids of the items that are new or changed. */
    eachMovedId: (listId: number, path: string) => ids.iterate(path, listId),
    /** Bodies of the items that are new or changed, each with the stored body of the same id. */
    eachMovedPair: (listId: number, path: string) => pairs.iterate(listId, path, listId),
  }
}

/** SQL: entries of a list (?) that a walk (?, ?) did not find. */
const GONE = `WHERE e.list = ?
  AND e.ordinal / 1000000 NOT IN (SELECT number FROM staged_page WHERE path = ? AND kept = 1)
  AND NOT EXISTS (SELECT 1 FROM staged_entry s WHERE s.path = ? AND s.id = e.id)`

/** Creates reads of what a walk did not find, on the connection that staged the walk. */
function createCatalogGone(db: Db) {
  const sql = {
    gone: db.prepare<[number, string, string], number>(`SELECT count(*) FROM catalog_entry e ${GONE}`).pluck(),
    goneIds: db
      .prepare<[number, string, string], string>(`SELECT e.id FROM catalog_entry e ${GONE} ORDER BY e.id`)
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
    /** Number of stored entries that the walk did not find. */
    countGone: (listId: number, path: string): number => sql.gone.get(listId, path, path) ?? 0,
    /** Their ids, in order. */
    eachGone: (listId: number, path: string) => sql.goneIds.iterate(listId, path, path),
    /** Stages the entries that a walk did not find as a further page of the walk, with this number. */
    carryEntries(listId: number, path: string, number: number): void {
      const count = sql.carry.run(path, number * PAGE_STRIDE, listId, path, path).changes
      if (count > 0) sql.carriedPage.run(path, number, CARRIED, count)
    },
  }
}
