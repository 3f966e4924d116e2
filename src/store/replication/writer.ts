import type { SourceName } from '../../domain/sources.ts'
import { answerState, createCatalogAnswerReader } from '../catalog/answers.ts'
import { FACETS } from '../catalog/list-query.ts'
import { FACET_COLUMNS } from '../catalog/list-staging.ts'
import { createCatalogListReader } from '../catalog/lists.ts'
import type { ChangeTracker } from '../changes/tracker.ts'
import type { Db } from '../database/open.ts'
import { splitEntryKey } from './catalog-pages.ts'
import type {
  AnswerValue,
  EntryValue,
  ListValue,
  MissingValue,
  RecordValue,
  TombstoneValue,
} from './rows.ts'

/**
 * Writes of carried rows: as the row says, dates included. All but the records' bytes come from the row itself. Call
 * inside the transaction that publishes; what changes is noted for the change log. Each remover tolerates what is not held.
 */
export function createCarriedWriter(db: Db, tracker: ChangeTracker) {
  return {
    ...createTombstones(db),
    ...createLists(db, tracker),
    ...createEntries(db),
    ...createAnswers(db, tracker),
    ...createCarriedDates(db),
    ...createIncoming(db),
    ...createForgetting(db),
  }
}

function createTombstones(db: Db) {
  const bury = db.prepare(
    'INSERT OR REPLACE INTO osv_tombstone (id, removed_at, run_id) VALUES (?, ?, ?)',
  )
  const both = db
    .prepare<[], string>('SELECT id FROM osv_tombstone JOIN osv_record USING (id) LIMIT 1')
    .pluck()
  const exhume = db.prepare('DELETE FROM osv_tombstone WHERE id = ?')
  return {
    putTombstone: ({ key, removedAt }: TombstoneValue, runId: number): void => {
      bury.run(key, removedAt, runId)
    },
    /** A record that is held and said to be removed; null: there is none. */
    readContradiction: (): string | null => both.get() ?? null,
    removeTombstone: (id: string): void => {
      exhume.run(id)
    },
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
    /** `confirmed`: by the mirror that wrote the row. */
    putList(value: ListValue, confirmed: number | null): void {
      const held = reader.readCatalogList(value.key)
      tracker.record(value.key, held === null ? null : String(held.changed), String(value.changed))
      const same = held?.changed === value.changed
      put.run({ ...value, confirmed: same ? later(held.confirmedAt, confirmed) : confirmed })
    },
  }
}

function createEntries(db: Db) {
  const marks = Array.from({ length: FACETS }, () => '?').join(', ')
  const drop = db.prepare(
    'DELETE FROM catalog_entry WHERE list = (SELECT id FROM catalog_list WHERE path = ?) AND id = ?',
  )
  const put = db.prepare(
    `INSERT INTO catalog_entry (list, ordinal, id, sha, body, ${FACET_COLUMNS})
     SELECT id, ?, ?, ?, ?, ${marks} FROM catalog_list WHERE path = ?`,
  )
  const settle = db.prepare('UPDATE catalog_entry SET ordinal = -1 - ordinal WHERE ordinal < 0')
  return {
    /**
     * Puts an item; its place is taken only by `settleEntries`, for until then another may have it. False when its list is
     * not held.
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
    /** Puts the items in their places, once all of them are there and those that go are gone. */
    settleEntries: (): void => {
      settle.run()
    },
  }
}

function createAnswers(db: Db, tracker: ChangeTracker) {
  const reader = createCatalogAnswerReader(db)
  const put = db.prepare(
    `INSERT OR REPLACE INTO catalog_answer
       (path, resource, owner, owner_sha, status, body, size, sha256, changed, etag, links, mentions, confirmed_at)
     VALUES (@key, @resource, @owner, unhex(@ownerSha), @status, @body, @size, unhex(@sha256), @changed, NULL, @links,
       @mentions, @confirmed)`,
  )
  const date = db
    .prepare<[string], number | null>('SELECT confirmed_at FROM catalog_answer WHERE path = ?')
    .pluck()
  const lack = db.prepare('INSERT OR REPLACE INTO catalog_lacking VALUES (@key, @resource)')
  const had = db.prepare('DELETE FROM catalog_lacking WHERE path = ?')
  return {
    /**
     * `body`: the stored gzip member; null where upstream has none. `confirmed`: by the mirror that wrote the row. Upstream's validator is
     * not carried.
     */
    putAnswer(value: AnswerValue, body: Buffer | null, confirmed: number | null): void {
      const { key, status, links } = value
      const next = { status, links, sha256: Buffer.from(value.sha256, 'hex') }
      const [before, after] = [reader.readAnswerState(key), answerState(next)]
      tracker.record(key, before, after)
      const own = before === after ? (date.get(key) ?? null) : null
      put.run({ ...value, body, confirmed: later(own, confirmed) })
    },
    putMissingPath: (value: MissingValue): void => {
      lack.run(value)
    },
    removeMissingPath: (path: string): void => {
      had.run(path)
    },
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
    /** Takes when what is held as it is was confirmed, where that is later than is known here. */
    confirmCarried: (table: keyof typeof moves, path: string, confirmed: number | null): void => {
      moves[table].run({ path, confirmed })
    },
  }
}

/** The later of two dates; null: neither is known. */
function later(one: number | null, other: number | null): number | null {
  return one === null || other === null ? (one ?? other) : Math.max(one, other)
}

/** A waiting room for the rows of records until their bytes pass in the archive: memory does not follow their number. */
function createIncoming(db: Db) {
  db.exec(
    `CREATE TEMP TABLE IF NOT EXISTS incoming_record (
       key TEXT PRIMARY KEY, modified TEXT, crc32 INTEGER, size INTEGER, sha256 TEXT, changed INTEGER, asOf INTEGER
     ) WITHOUT ROWID`,
  )
  const put = db.prepare(
    'INSERT OR REPLACE INTO incoming_record VALUES (@key, @modified, @crc32, @size, @sha256, @changed, @asOf)',
  )
  const get = db.prepare<[string], RecordValue>('SELECT * FROM incoming_record WHERE key = ?')
  const drop = db.prepare('DELETE FROM incoming_record WHERE key = ?')
  const first = db
    .prepare<[], string>('SELECT key FROM incoming_record ORDER BY key LIMIT 1')
    .pluck()
  const clear = db.prepare('DELETE FROM incoming_record')
  const count = db.prepare<[], number>('SELECT count(*) FROM incoming_record').pluck()
  return {
    incoming: {
      put: (value: RecordValue): void => {
        put.run(value)
      },
      read: (id: string): RecordValue | null => get.get(id) ?? null,
      drop: (id: string): void => {
        drop.run(id)
      },
      /** A record whose bytes have not come; null when all have. */
      first: (): string | null => first.get() ?? null,
      count: (): number => count.get() ?? 0,
      clear: (): void => {
        clear.run()
      },
    },
  }
}

/**
 * What a mirror knows of its own upstream is worth nothing for what another mirror saw: validators, pages as they were
 * walked, doubts, answers in hand, and what a guard refused. The next sync begins afresh.
 */
function createForgetting(db: Db) {
  const own = "(resource = 'users') = ?"
  const states = db.prepare(
    `DELETE FROM upstream_state WHERE path IN (SELECT path FROM document WHERE source = ?)
       OR (? = 'osv' AND path LIKE '/external/osv/%')`,
  )
  const doubts = db.prepare("DELETE FROM osv_doubted WHERE ? = 'osv'")
  const missing = db.prepare("DELETE FROM osv_missing WHERE ? = 'osv'")
  const refused = db.prepare(
    `UPDATE quarantine SET decision = 'superseded', decided_at = ? WHERE source = ? AND decision IS NULL`,
  )
  const pages = db.prepare(
    `DELETE FROM catalog_page WHERE list IN (SELECT id FROM catalog_list WHERE ${own})`,
  )
  const fetched = db.prepare(`DELETE FROM catalog_fetched WHERE ${own}`)
  return {
    /** Forgets what is known of the upstream of a source. */
    forgetUpstream(source: SourceName, now: number): void {
      states.run(source, source)
      doubts.run(source)
      missing.run(source)
      refused.run(now, source)
      if (source !== 'catalog' && source !== 'identity') return
      const flag = source === 'identity' ? 1 : 0
      pages.run(flag)
      fetched.run(flag)
    },
  }
}
