import { createCatalogListReader } from './catalog.ts'
import { createCatalogGone, createCatalogMoves } from './catalog-moves.ts'
import { createCatalogStaging, FACET_COLUMNS } from './catalog-staging.ts'
import type { Db } from './database.ts'
import { nextChanged } from './documents.ts'
import type { ChangeNotes } from './notes.ts'

/** Writes of the catalog's lists, inside the transaction that publishes; what changes is noted for the change log. */
export function createCatalogListWriter(db: Db, notes: ChangeNotes) {
  const catalogStaging = createCatalogStaging(db) // before the statements that read its tables
  const sql = prepareListWrites(db)
  const reader = createCatalogListReader(db)
  return {
    ...reader,
    ...createCatalogMoves(db),
    ...createCatalogGone(db),
    catalogStaging,
    /** `[id, sha, body]` of every item of a walk, kept pages included, in order. */
    eachWalked: (listId: number | null, path: string) =>
      sql.walked.iterate(listId ?? -1, path, path),
    /** Makes a walk the list's content: only pages that came anew are written. Returns the number of entries. */
    replaceCatalogList(
      path: string,
      resource: string,
      frame: string,
      fields: readonly string[],
      now: number,
    ): number {
      const held = reader.readCatalogList(path)
      const changed = nextChanged(held?.changed ?? null, null, now)
      notes.note(path, held === null ? null : String(held.changed), String(changed))
      const id = held?.id ?? Number(sql.list.run(path, resource, frame, changed).lastInsertRowid)
      sql.dropEntries.run(id, path)
      sql.dropPages.run(id)
      sql.entries.run(id, path)
      sql.pages.run(id, path)
      sql.doubtPages.run(id)
      sql.updateList.run(frame, resource, JSON.stringify(fields), id, changed, id)
      return Number(sql.count.get(id))
    },
    /** Reads the facets of a list's items again, by `read`; those that are as they were are not written. */
    rereadFacets(path: string, read: (body: Buffer) => readonly (string | null)[]): void {
      const list = reader.readCatalogList(path)
      if (list === null) return
      let ordinal = -1
      for (;;) {
        const rows = sql.facetRows.all(list.id, ordinal, REREAD)
        for (const [rowid, at, body, ...held] of rows) {
          ordinal = at
          const facets = read(body)
          const values = held.map((_, facet) => facets[facet] ?? null)
          if (values.some((value, facet) => value !== held[facet]))
            sql.setFacets.run(...values, rowid)
        }
        if (rows.length < REREAD) return
      }
    },
    /** Notes when lists were walked: path and upstream's date, unix milliseconds. */
    confirmLists: (lists: readonly (readonly [path: string, at: number])[]): void => {
      for (const [path, at] of lists) sql.confirm.run(at, path)
    },
    removeCatalogList(path: string): void {
      const held = reader.readCatalogList(path)
      if (held === null) return
      notes.note(path, String(held.changed), null)
      sql.clearEntries.run(held.id)
      sql.dropPages.run(held.id)
      sql.removeList.run(held.id)
    },
  }
}

/** Items read at a time, each with its body. */
const REREAD = 500

type FacetRow = [rowid: number, ordinal: number, body: Buffer, ...facets: (string | null)[]]

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
    list: db.prepare(
      'INSERT INTO catalog_list (path, resource, frame, entries, changed) VALUES (?, ?, ?, 0, ?)',
    ),
    updateList: db.prepare(
      `UPDATE catalog_list SET frame = ?, resource = ?, fields = ?,
         entries = (SELECT count(*) FROM catalog_entry WHERE list = ?), changed = ? WHERE id = ?`,
    ),
    count: db.prepare<[number], number>('SELECT entries FROM catalog_list WHERE id = ?').pluck(),
    dropEntries: db.prepare(
      `DELETE FROM catalog_entry WHERE list = ? AND ordinal / 1000000 NOT IN
         (SELECT number FROM staged_page WHERE path = ? AND kept = 1)`,
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
    // An item that moves while the list is walked is met on two pages and kept from one. The other page lacks it, so it
    // is not taken for unchanged when the first one loses the item: nothing that is known of it is to match again.
    doubtPages: db.prepare(
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
    confirm: db.prepare('UPDATE catalog_list SET confirmed_at = ? WHERE path = ?'),
    clearEntries: db.prepare('DELETE FROM catalog_entry WHERE list = ?'),
    removeList: db.prepare('DELETE FROM catalog_list WHERE id = ?'),
  }
}
