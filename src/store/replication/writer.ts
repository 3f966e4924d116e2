import { OSV_ROOT } from '../../base/domain/feed-paths.ts'
import { type SourceName, isPrivateSource } from '../../base/domain/sources.ts'
import { answerState, createCatalogAnswerReader } from '../catalog/answers.ts'
import { IS_OWNED, ownerFlag } from '../catalog/digest-lines.ts'
import { FACETS } from '../catalog/list-query.ts'
import { FACET_COLUMNS } from '../catalog/list-staging.ts'
import { createCatalogListReader } from '../catalog/lists.ts'
import type { ChangeTracker } from '../changes/tracker.ts'
import type { Db } from '../database/open.ts'
import { queries } from '../database/query.ts'
import { splitEntryKey } from './catalog-pages.ts'
import type { AnswerValue, EntryValue, ListValue, MissingValue, TombstoneValue } from './rows.ts'

/**
 * Creates writes of replicated rows, with the row's own values and dates; only the bytes of records are not part of
 * their row. Call inside the transaction that publishes; changes are recorded for the change log. Removers ignore rows
 * that are not stored.
 */
export function createCarriedWriter(db: Db, tracker: ChangeTracker) {
  return {
    ...createTombstones(db),
    ...createLists(db, tracker),
    ...createEntries(db),
    ...createAnswers(db, tracker),
    ...createCarriedDates(db),
    ...createUpstreamReset(db),
  }
}

function createTombstones(db: Db) {
  const { run, value } = queries(db)
  const put = db.prepare('INSERT OR REPLACE INTO osv_tombstone (id, removed_at, run_id) VALUES (?, ?, ?)')
  return {
    putTombstone: ({ key, removedAt }: TombstoneValue, runId: number): void => {
      put.run(key, removedAt, runId)
    },
    /** Returns the id of a record that is both stored and marked as removed; null if there is none. */
    readContradiction: value<[], string>('SELECT id FROM osv_tombstone JOIN osv_record USING (id) LIMIT 1'),
    removeTombstone: run<[id: string]>('DELETE FROM osv_tombstone WHERE id = ?'),
  }
}

function createLists(db: Db, tracker: ChangeTracker) {
  const reader = createCatalogListReader(db)
  const put = db.prepare(
    `INSERT INTO catalog_list (path, resource, frame, entries, changed, confirmed_at)
     VALUES (@key, @resource, @frame, @entries, @changed, @confirmed)
     ON CONFLICT (path) DO UPDATE SET resource = @resource, frame = @frame, entries = @entries, changed = @changed,
       confirmed_at = @confirmed`,
  )
  return {
    /** `confirmed`: date of the confirmation by the mirror that wrote the row. */
    putList(value: ListValue, confirmed: number | null): void {
      const stored = reader.readList(value.key)
      tracker.record(value.key, stored === null ? null : String(stored.changed), String(value.changed))
      const same = stored?.changed === value.changed
      put.run({ ...value, confirmed: same ? later(stored.confirmedAt, confirmed) : confirmed })
    },
  }
}

function createEntries(db: Db) {
  const { run } = queries(db)
  const marks = Array.from({ length: FACETS }, () => '?').join(', ')
  const drop = db.prepare(
    'DELETE FROM catalog_entry WHERE list = (SELECT id FROM catalog_list WHERE path = ?) AND id = ?',
  )
  const put = db.prepare(
    `INSERT INTO catalog_entry (list, ordinal, id, sha, body, ${FACET_COLUMNS})
     SELECT id, ?, ?, ?, ?, ${marks} FROM catalog_list WHERE path = ?`,
  )
  return {
    /**
     * Stores an item with a provisional position: until `settleEntries` another item may have its position. Returns
     * false if its list is not stored.
     */
    putEntry({ key, ordinal, sha, facets }: EntryValue, body: Buffer): boolean {
      const [path, id] = splitEntryKey(key)
      drop.run(path, id)
      const values = Array.from({ length: FACETS }, (_, facet) => facets[facet] ?? null)
      const bytes = Buffer.from(sha, 'hex')
      return put.run(-1 - ordinal, id, bytes, body, ...values, path).changes > 0
    },
    removeEntry: (key: string): void => {
      drop.run(...splitEntryKey(key))
    },
    /** Moves the items to their final positions, once all are stored and removed items are deleted. */
    settleEntries: run<[]>('UPDATE catalog_entry SET ordinal = -1 - ordinal WHERE ordinal < 0'),
  }
}

function createAnswers(db: Db, tracker: ChangeTracker) {
  const { run } = queries(db)
  const reader = createCatalogAnswerReader(db)
  const put = db.prepare(
    `INSERT OR REPLACE INTO catalog_answer
       (path, resource, owner, owner_sha, status, body, size, sha256, changed, etag, links, mentions, confirmed_at)
     VALUES (@key, @resource, @owner, unhex(@ownerSha), @status, @body, @size, unhex(@sha256), @changed, NULL, @links,
       @mentions, @confirmed)`,
  )
  const date = db.prepare<[string], number | null>('SELECT confirmed_at FROM catalog_answer WHERE path = ?').pluck()
  return {
    /**
     * `body`: the stored gzip member; null if upstream has none. `confirmed`: date of the confirmation by the mirror
     * that wrote the row. Upstream's validator is not replicated.
     */
    putAnswer(value: AnswerValue, body: Buffer | null, confirmed: number | null): void {
      const { key, status, links } = value
      const next = { status, links, sha256: Buffer.from(value.sha256, 'hex') }
      const before = reader.readAnswerState(key)
      const after = answerState(next)
      tracker.record(key, before, after)
      const own = before === after ? (date.get(key) ?? null) : null
      put.run({ ...value, body, confirmed: later(own, confirmed) })
    },
    putMissingPath: run<MissingValue>(
      'INSERT OR REPLACE INTO catalog_lacking (path, resource) VALUES (@key, @resource)',
    ),
    removeMissingPath: run<[path: string]>('DELETE FROM catalog_lacking WHERE path = ?'),
  }
}

function createCarriedDates(db: Db) {
  const moveOf = (table: string) =>
    db.prepare(
      `UPDATE ${table} SET confirmed_at = @confirmed
       WHERE path = @path AND @confirmed IS NOT NULL AND coalesce(confirmed_at < @confirmed, 1)`,
    )
  const moves = {
    catalog_list: moveOf('catalog_list'),
    catalog_answer: moveOf('catalog_answer'),
  }
  return {
    /** Stores when an unchanged row was confirmed, if that is later than the stored date. */
    confirmCarried: (table: keyof typeof moves, path: string, confirmed: number | null): void => {
      moves[table].run({ path, confirmed })
    },
  }
}

/** Returns the later of two dates; null if both are unknown. */
function later(one: number | null, other: number | null): number | null {
  return one === null || other === null ? (one ?? other) : Math.max(one, other)
}

/**
 * Creates the removal of upstream state after an import: validators, walked pages, suspect ids, fetched answers and
 * refused changes describe another state than the imported one. The next sync starts without them.
 */
function createUpstreamReset(db: Db) {
  const states = db.prepare(
    `DELETE FROM upstream_state WHERE path IN (SELECT path FROM document WHERE source = ?)
       OR (? = 'osv' AND path LIKE '${OSV_ROOT}%')`,
  )
  const suspects = db.prepare("DELETE FROM osv_doubted WHERE ? = 'osv'")
  const missing = db.prepare("DELETE FROM osv_missing WHERE ? = 'osv'")
  const outside = db.prepare("DELETE FROM osv_outside WHERE ? = 'osv'")
  const refused = db.prepare(
    `UPDATE quarantine SET decision = 'superseded', decided_at = ? WHERE source = ? AND decision IS NULL`,
  )
  const pages = db.prepare(`DELETE FROM catalog_page WHERE list IN (SELECT id FROM catalog_list WHERE ${IS_OWNED})`)
  const fetched = db.prepare(`DELETE FROM catalog_fetched WHERE ${IS_OWNED}`)
  return {
    /** Deletes the state of a source's upstream. */
    forgetUpstream(source: SourceName, now: number): void {
      states.run(source, source)
      suspects.run(source)
      missing.run(source)
      outside.run(source)
      refused.run(now, source)
      if (!isPrivateSource(source)) return
      pages.run(ownerFlag(source))
      fetched.run(ownerFlag(source))
    },
  }
}
