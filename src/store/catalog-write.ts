import { type CatalogAnswer, createCatalogReader } from './catalog.ts'
import { createCatalogStaging, FACET_COLUMNS } from './catalog-staging.ts'
import type { Db } from './database.ts'
import { nextChanged } from './documents.ts'

/** An answer in hand, not published yet. */
export type FetchedAnswer = Omit<CatalogAnswer, 'changed'>

/** Writes of the catalog. All but `keepFetched` belong inside the transaction that publishes. */
export function createCatalogWriter(db: Db) {
  const catalogStaging = createCatalogStaging(db) // before the statements that read its tables
  const sql = prepareWrites(db)
  const reader = createCatalogReader(db)
  const publish = (row: FetchedRow, now: number): void => {
    const before = reader.readCatalogAnswer(row.path)
    const same =
      before !== null &&
      before.status === row.status &&
      before.sha256.equals(row.sha256) &&
      JSON.stringify(before.links) === row.links
    const changed = same ? before.changed : nextChanged(before?.changed ?? null, null, now)
    sql.answer.run({ ...row, changed })
  }
  return {
    ...reader,
    /** `[id, sha, body]` of every item of a walk, kept pages included, in order. */
    eachWalked: (listId: number | null, path: string) =>
      sql.walked.iterate(listId ?? -1, path, path),
    /** How many entries that are held the walk did not meet. */
    countGone: (listId: number, path: string): number => sql.gone.get(listId, path, path) ?? 0,
    catalogStaging,
    /** Keeps an answer for the publication; survives the process. */
    keepFetched: (answer: FetchedAnswer): void => {
      const { links, mentions } = answer
      sql.keep.run({ ...answer, links: JSON.stringify(links), mentions: JSON.stringify(mentions) })
    },
    /** Paths in hand, each with the digest of its owner when it was fetched. */
    listFetched: (): Map<string, Buffer> =>
      new Map(sql.fetched.all().map(({ path, sha }) => [path, sha])),
    /** Publishes what is in hand of the resources owned, for the paths that are wanted; forgets the rest of theirs. */
    publishFetched(
      owned: (resource: string) => boolean,
      wanted: (path: string) => boolean,
      now: number,
    ): number {
      let count = 0
      for (const { path, resource } of sql.fetchedPaths.all()) {
        if (!owned(resource)) continue
        const row = wanted(path) ? sql.fetchedRow.get(path) : undefined
        if (row !== undefined) {
          publish(row, now)
          count++
        }
        sql.dropFetched.run(path)
      }
      return count
    },
    /** The answer stays as it is, its owner is listed anew. */
    confirmAnswer: (path: string, ownerSha: Buffer): void => {
      sql.confirm.run(ownerSha, path)
    },
    replaceLacking(owned: (resource: string) => boolean, paths: ReadonlyMap<string, string>): void {
      for (const { path, resource } of reader.listLacking()) if (owned(resource)) sql.had.run(path)
      for (const [path, resource] of paths) sql.lacks.run(path, resource)
    },
    removeAnswer: (path: string): void => {
      sql.removeAnswer.run(path)
    },
    /** Makes a walk the list's content: only pages that came anew are written. Returns the number of entries. */
    replaceCatalogList(path: string, resource: string, frame: string, now: number): number {
      const held = reader.readCatalogList(path)
      const changed = nextChanged(held?.changed ?? null, null, now)
      const id = held?.id ?? Number(sql.list.run(path, resource, frame, changed).lastInsertRowid)
      sql.dropEntries.run(id, path)
      sql.dropPages.run(id)
      sql.entries.run(id, path)
      sql.pages.run(id, path)
      sql.updateList.run(frame, resource, id, changed, id)
      return Number(sql.count.get(id))
    },
    /** The validators of a walk that found the list as it is held. */
    confirmPages: (listId: number, path: string): void => {
      sql.dropPages.run(listId)
      sql.pages.run(listId, path)
    },
    removeCatalogList(path: string): void {
      const held = reader.readCatalogList(path)
      if (held === null) return
      sql.clearEntries.run(held.id)
      sql.dropPages.run(held.id)
      sql.removeList.run(held.id)
    },
  }
}

type FetchedRow = Omit<FetchedAnswer, 'links' | 'mentions'> & { links: string; mentions: string }

function prepareWrites(db: Db) {
  const columns =
    'path, resource, owner, owner_sha, status, body, size, sha256, etag, links, mentions'
  const named =
    '@path, @resource, @owner, @ownerSha, @status, @body, @size, @sha256, @etag, @links, @mentions'
  return {
    walked: db
      .prepare<[number, string, string], [string, Buffer, Buffer]>(
        `SELECT id, sha, body FROM (
           SELECT e.ordinal, e.id, e.sha, e.body FROM catalog_entry e WHERE e.list = ? AND e.ordinal / 1000000 IN
             (SELECT number FROM staged_page WHERE path = ? AND kept = 1)
           UNION ALL SELECT ordinal, id, sha, body FROM staged_entry WHERE path = ?) ORDER BY ordinal`,
      )
      .raw(),
    gone: db
      .prepare<[number, string, string], number>(
        `SELECT count(*) FROM catalog_entry e WHERE e.list = ?
           AND e.ordinal / 1000000 NOT IN (SELECT number FROM staged_page WHERE path = ? AND kept = 1)
           AND NOT EXISTS (SELECT 1 FROM staged_entry s WHERE s.path = ? AND s.id = e.id)`,
      )
      .pluck(),
    answer: db.prepare(
      `INSERT OR REPLACE INTO catalog_answer (${columns}, changed) VALUES (${named}, @changed)`,
    ),
    keep: db.prepare(`INSERT OR REPLACE INTO catalog_fetched (${columns}) VALUES (${named})`),
    fetched: db.prepare<[], { path: string; sha: Buffer }>(
      'SELECT path, owner_sha AS sha FROM catalog_fetched',
    ),
    fetchedPaths: db.prepare<[], { path: string; resource: string }>(
      'SELECT path, resource FROM catalog_fetched',
    ),
    fetchedRow: db.prepare<[string], FetchedRow>(
      `SELECT path, resource, owner, owner_sha AS ownerSha, status, body, size, sha256, etag, links,
         mentions FROM catalog_fetched WHERE path = ?`,
    ),
    dropFetched: db.prepare('DELETE FROM catalog_fetched WHERE path = ?'),
    confirm: db.prepare('UPDATE catalog_answer SET owner_sha = ? WHERE path = ?'),
    had: db.prepare('DELETE FROM catalog_lacking WHERE path = ?'),
    lacks: db.prepare('INSERT OR REPLACE INTO catalog_lacking VALUES (?, ?)'),
    removeAnswer: db.prepare('DELETE FROM catalog_answer WHERE path = ?'),
    list: db.prepare(
      'INSERT INTO catalog_list (path, resource, frame, entries, changed) VALUES (?, ?, ?, 0, ?)',
    ),
    updateList: db.prepare(
      `UPDATE catalog_list SET frame = ?, resource = ?,
         entries = (SELECT count(*) FROM catalog_entry WHERE list = ?), changed = ? WHERE id = ?`,
    ),
    count: db.prepare<[number], number>('SELECT entries FROM catalog_list WHERE id = ?').pluck(),
    // Ordinals of a page: its number x 1,000,000 and on.
    dropEntries: db.prepare(
      `DELETE FROM catalog_entry WHERE list = ? AND ordinal / 1000000 NOT IN
         (SELECT number FROM staged_page WHERE path = ? AND kept = 1)`,
    ),
    dropPages: db.prepare('DELETE FROM catalog_page WHERE list = ?'),
    // An item that moved to another page while the list was walked is met twice; the first place counts.
    entries: db.prepare(
      `INSERT OR IGNORE INTO catalog_entry (list, ordinal, id, sha, body, ${FACET_COLUMNS})
       SELECT ?, ordinal, id, sha, body, ${FACET_COLUMNS} FROM staged_entry WHERE path = ? ORDER BY ordinal`,
    ),
    pages: db.prepare(
      `INSERT INTO catalog_page (list, number, cursor, next, etag, last_modified, sha256, entries)
       SELECT ?, number, cursor, next, etag, lastModified, sha256, entries FROM staged_page WHERE path = ?`,
    ),
    clearEntries: db.prepare('DELETE FROM catalog_entry WHERE list = ?'),
    removeList: db.prepare('DELETE FROM catalog_list WHERE id = ?'),
  }
}

export type CatalogWriter = ReturnType<typeof createCatalogWriter>
