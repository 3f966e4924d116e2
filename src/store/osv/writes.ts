import { crc32 as crc32Of } from 'node:zlib'
import { faultOfRecordId } from '../../base/domain/record-id.ts'
import { fixIn } from '../dates/writes.ts'
import type { Db } from '../database/open.ts'
import { queries } from '../database/query.ts'
import { createDateFloorReader } from '../feeds/date-floor.ts'
import type { ChangeTracker } from '../changes/tracker.ts'
import { createPartWriter } from './archive-parts.ts'
import { type ArchiveInfo, type RecordToStore, createOsvReader } from './reads.ts'
import { type ReplacedRecord, createBodyReplacement } from './superseded.ts'

/** Creates writes of OSV records. Call inside a transaction of the caller's; changes are recorded for the change log. */
export function createOsvWriter(db: Db, tracker: ChangeTracker) {
  const sql = prepareWrites(db)
  const parts = createPartWriter(db)
  const bodies = createBodyReplacement(db, tracker)
  const { lastServed } = createDateFloorReader(db)
  const insert = (record: RecordToStore, changed: number): void => {
    const rowid = sql.body.run(record.body).lastInsertRowid
    const { id, modified, crc32, size, sha256, asOf } = record
    const member = record.bodyCrc32 ?? crc32Of(record.body)
    sql.insert.run(id, rowid, modified, crc32, size, sha256, changed, asOf, member, fixOf(record))
  }
  return {
    ...createOsvReader(db),
    ...parts,
    ...createExactWrites(sql, parts, tracker, insert, bodies),
    ...createMissingWrites(db),
    ...createOutsideWrites(db),
    ...createTombstoneAndArchiveWrites(db),
    /** Stores a record in an empty store, which has no archive parts either. `changed` in Unix seconds. */
    insertRecord(record: RecordToStore, changed: number): void {
      tracker.markIncomplete()
      insert(record, changed)
    },
    /** Replaces a stored record's bytes; its Last-Modified increases by at least a second. */
    updateRecord(record: RecordToStore, changed: number): void {
      parts.touchPart(record.id)
      const { id, modified, crc32, size, sha256, asOf } = record
      const stored = sql.bodyOf.get(id)
      if (tracker.isComplete())
        tracker.record(id, stored ? stateOf(stored[2], stored[3]) : null, stateOf(modified, sha256))
      const last = lastServed(stored?.[1] ?? null)
      const forward = last === null ? changed : Math.max(changed, last + 1)
      if (stored === undefined) return insert(record, forward)
      const rowid = bodies.replaceBody(replacedOf(id, stored), record)
      const member = crc32Of(record.body)
      const fix = fixOf(record)
      sql.update.run(rowid, modified, crc32, size, sha256, forward, asOf, member, fix, id)
    },
    /** Removes a record and stores a tombstone, unless its id is one that no mirror may store. */
    removeRecord(id: string, runId: number, now: number): void {
      parts.touchPart(id)
      const stored = sql.bodyOf.get(id)
      tracker.record(id, stored ? stateOf(stored[2], stored[3]) : null, null)
      if (stored !== undefined) bodies.releaseBody(replacedOf(id, stored))
      sql.remove.run(id)
      if (faultOfRecordId(id) === null) sql.addTombstone.run(id, now, runId)
    },
    /** Puts lost or damaged bytes of a record back. Returns whether they are those that were stored. */
    repairBody: (stored: RepairedBody): boolean => sql.repair.run(stored).changes > 0,
    /** Replaces the suspect ids, which the next run requests again; ids that are not stored are ignored. */
    replaceSuspectIds(ids: Iterable<string>): void {
      sql.clearSuspect.run()
      for (const id of ids) sql.addSuspect.run(id)
    },
    /** Every id that the open transaction wrote, perhaps with other names; null: they are too many. */
    listWritten: (): readonly string[] | null => tracker.names(),
  }
}

/** Creates writes of imported records, which keep the dates of the source mirror. */
function createExactWrites(
  sql: ReturnType<typeof prepareWrites>,
  parts: Pick<ReturnType<typeof createPartWriter>, 'touchPart'>,
  tracker: ChangeTracker,
  insert: (record: RecordToStore, changed: number) => void,
  bodies: Pick<ReturnType<typeof createBodyReplacement>, 'releaseBody'>,
) {
  return {
    /** Stores a record in a store without records and archive parts. `changed` in Unix seconds. */
    addRecord(record: RecordToStore, changed: number): void {
      if (tracker.isComplete()) tracker.record(record.id, null, stateOf(record.modified, record.sha256))
      insert(record, changed)
    },
    /** Stores or replaces a record; `changed` is its Last-Modified, Unix seconds, even if that is earlier than before. */
    putRecord(record: RecordToStore, changed: number): void {
      parts.touchPart(record.id)
      const { id, modified, sha256 } = record
      const stored = sql.bodyOf.get(id)
      if (tracker.isComplete())
        tracker.record(id, stored ? stateOf(stored[2], stored[3]) : null, stateOf(modified, sha256))
      if (stored !== undefined) {
        bodies.releaseBody(replacedOf(id, stored))
        sql.remove.run(id)
      }
      insert(record, changed)
    },
    /** Removes a record without a tombstone; does nothing if it is not stored. */
    dropRecord(id: string): void {
      const stored = sql.bodyOf.get(id)
      if (stored === undefined) return
      parts.touchPart(id)
      tracker.record(id, stateOf(stored[2], stored[3]), null)
      bodies.releaseBody(replacedOf(id, stored))
      sql.remove.run(id)
    },
  }
}

/** Creates the writes of old tombstones, and of what the derived archive is. */
function createTombstoneAndArchiveWrites(db: Db) {
  const { run } = queries(db)
  return {
    /** Deletes tombstones older than `before` (Unix milliseconds), and those of ids that exist again. */
    forgetTombstones: run<[before: number]>(
      `DELETE FROM osv_tombstone WHERE removed_at < ? OR EXISTS
         (SELECT 1 FROM osv_record WHERE osv_record.id = osv_tombstone.id)`,
    ),
    replaceArchive: run<ArchiveInfo>(
      `INSERT OR REPLACE INTO osv_archive (only, file, size, crc32c, sha256, changed)
       VALUES (1, @file, @size, @crc32c, @sha256, @changed)`,
    ),
  }
}

/** Creates writes of the ids that upstream lists and that a partial snapshot lacks, or has in an older version only. */
function createMissingWrites(db: Db) {
  const { run } = queries(db)
  return {
    clearMissing: run<[]>('DELETE FROM osv_missing'),
    addMissing: run<[id: string]>('INSERT OR IGNORE INTO osv_missing (id) VALUES (?)'),
  }
}

/** Creates writes of the listed records that are out of scope by their content. */
function createOutsideWrites(db: Db) {
  const { run } = queries(db)
  return {
    clearOutside: run<[]>('DELETE FROM osv_outside'),
    dropOutside: run<[id: string]>('DELETE FROM osv_outside WHERE id = ?'),
    /** `modified`: the index's stamp of the version that was judged. */
    putOutside: run<[id: string, modified: string]>('INSERT OR REPLACE INTO osv_outside (id, modified) VALUES (?, ?)'),
  }
}

type StoredRow = [body: number, changed: number, modified: string, sha256: Buffer, size: number]

function replacedOf(id: string, [body, , modified, sha256, size]: StoredRow): ReplacedRecord {
  return { id, body, modified, sha256, size }
}

/** Returns 1 if a record names a fix, 0 if not; null if its bytes are damaged. */
function fixOf({ fix, body, size }: RecordToStore): number | null {
  return fix === undefined ? fixIn(body, size) : Number(fix)
}

/** Returns a text that differs whenever a record's bytes or its `modified` differ. */
function stateOf(modified: string, sha256: Buffer): string {
  return `${sha256.toString('base64')} ${modified}`
}

/** Bytes that a record had, and their sums. */
type RepairedBody = Required<Pick<RecordToStore, 'id' | 'body' | 'size' | 'sha256' | 'bodyCrc32'>>

function prepareWrites(db: Db) {
  return {
    body: db.prepare('INSERT INTO osv_body (bytes) VALUES (?)'),
    insert: db.prepare(
      `INSERT INTO osv_record (id, body, modified, crc32, size, sha256, changed, as_of, body_crc32, fix)
       VALUES (?, ?, ?, ?, ?, ?, ?, ?, ?, ?)`,
    ),
    bodyOf: db
      .prepare<[string], StoredRow>('SELECT body, changed, modified, sha256, size FROM osv_record WHERE id = ?')
      .raw(),
    update: db.prepare(
      `UPDATE osv_record SET body = ?, modified = ?, crc32 = ?, size = ?, sha256 = ?, changed = ?,
         as_of = ?, body_crc32 = ?, fix = ? WHERE id = ?`,
    ),
    repair: db.prepare<[RepairedBody]>(
      `INSERT OR REPLACE INTO osv_body (rowid, bytes) SELECT body, @body FROM osv_record
         WHERE id = @id AND size = @size AND sha256 = @sha256 AND body_crc32 = @bodyCrc32`,
    ),
    remove: db.prepare('DELETE FROM osv_record WHERE id = ?'),
    addTombstone: db.prepare('INSERT OR REPLACE INTO osv_tombstone (id, removed_at, run_id) VALUES (?, ?, ?)'),
    clearSuspect: db.prepare('DELETE FROM osv_doubted'),
    addSuspect: db.prepare('INSERT OR IGNORE INTO osv_doubted SELECT id FROM osv_record WHERE id = ?'),
  }
}

type StagedRow = Omit<RecordToStore, 'fix'> & { fix: number | null }

/**
 * Creates a staging table for records fetched one by one: temporary, so that nothing locks the database while the
 * network is slow, and memory does not grow with their number. It is lost with the connection.
 */
export function createStaging(db: Db) {
  const { exists, run } = queries(db)
  db.exec(
    `CREATE TEMP TABLE IF NOT EXISTS staged (
       id TEXT PRIMARY KEY, modified TEXT, crc32 INTEGER, size INTEGER, sha256 BLOB, body BLOB, asOf INTEGER,
       fix INTEGER
     )`,
  )
  const put = db.prepare(
    `INSERT OR REPLACE INTO staged (id, modified, crc32, size, sha256, body, asOf, fix)
     VALUES (@id, @modified, @crc32, @size, @sha256, @body, @asOf, @fix)`,
  )
  const ids = db.prepare<[], string>('SELECT id FROM staged').pluck()
  const take = db.prepare<[string], StagedRow>('SELECT * FROM staged WHERE id = ?')
  const any = db.prepare<[], number>('SELECT EXISTS (SELECT 1 FROM staged)').pluck()
  return {
    stage: (record: RecordToStore): void => {
      put.run({ ...record, fix: fixOf(record) })
    },
    /** Calls `use` with each staged record; one is in memory at a time. */
    eachStaged(use: (record: RecordToStore) => void): void {
      for (const id of ids.all()) {
        const row = take.get(id)
        if (row === undefined) continue
        const { fix, ...record } = row
        use(fix === null ? record : { ...record, fix: fix === 1 })
      }
    },
    isEmpty: (): boolean => any.get() !== 1,
    isStaged: exists<[id: string]>('SELECT 1 FROM staged WHERE id = ?'),
    clear: run<[]>('DELETE FROM staged'),
  }
}
