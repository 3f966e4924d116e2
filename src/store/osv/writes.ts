import { crc32 as crc32Of } from 'node:zlib'
import { faultOfRecordId } from '../../domain/record-id.ts'
import type { Db } from '../database/open.ts'
import type { ChangeTracker } from '../changes/tracker.ts'
import { createPartWriter } from './archive-parts.ts'
import { type ArchiveInfo, type RecordToStore, createOsvReader } from './reads.ts'

/** Writes of OSV records. Call inside a transaction of the caller's; what changes is noted for the change log. */
export function createOsvWriter(db: Db, tracker: ChangeTracker) {
  const sql = prepareWrites(db)
  const parts = createPartWriter(db)
  const insert = (record: RecordToStore, changed: number): void => {
    const rowid = sql.body.run(record.body).lastInsertRowid
    const { id, modified, crc32, size, sha256, asOf } = record
    const member = crc32Of(record.body)
    sql.insert.run(id, rowid, modified, crc32, size, sha256, changed, asOf, member)
  }
  return {
    ...createOsvReader(db),
    ...parts,
    ...createExactWrites(sql, parts, tracker, insert),
    ...createMissingWrites(db),
    /** Stores a record where none is held at all, and so no archive in parts either. `changed` in unix seconds. */
    insertRecord(record: RecordToStore, changed: number): void {
      tracker.markIncomplete()
      insert(record, changed)
    },
    /** Replaces a held record's bytes; its Last-Modified moves forward by at least a second. */
    updateRecord(record: RecordToStore, changed: number): void {
      parts.touchPart(record.id)
      const { id, modified, crc32, size, sha256, asOf } = record
      const held = sql.bodyOf.get(id)
      if (tracker.isComplete())
        tracker.record(id, held ? stateOf(held[2], held[3]) : null, stateOf(modified, sha256))
      if (held === undefined) return insert(record, changed)
      const forward = Math.max(changed, held[1] + 1)
      const { changes } = sql.updateBody.run(record.body, held[0])
      // Its bytes were lost: they get a row of their own, the old number may be another record's by now.
      const rowid = changes > 0 ? held[0] : sql.body.run(record.body).lastInsertRowid
      const member = crc32Of(record.body)
      sql.update.run(rowid, modified, crc32, size, sha256, forward, asOf, member, id)
    },
    /** The bytes stay, the index's stamp is new. */
    markRecord: (id: string, modified: string): void => {
      const held = sql.bodyOf.get(id)
      if (held !== undefined)
        tracker.record(id, stateOf(held[2], held[3]), stateOf(modified, held[3]))
      sql.mark.run(modified, id)
    },
    /** Removes a record and leaves a tombstone, unless by its id no mirror should have had it. */
    removeRecord(id: string, runId: number, now: number): void {
      parts.touchPart(id)
      const held = sql.bodyOf.get(id)
      tracker.record(id, held ? stateOf(held[2], held[3]) : null, null)
      sql.removeBody.run(id)
      sql.remove.run(id)
      if (faultOfRecordId(id) === null) sql.bury.run(id, now, runId)
    },
    /** Drops the tombstones that are older than `before` (unix milliseconds), and those of ids that are back. */
    forgetTombstones: (before: number): void => {
      sql.forget.run(before)
    },
    /** The ids to ask for again at the next run; those that are not held are left out. */
    replaceSuspectIds(ids: Iterable<string>): void {
      sql.trust.run()
      for (const id of ids) sql.doubt.run(id)
    },
    replaceArchive: (info: ArchiveInfo): void => {
      sql.archive.run(info)
    },
  }
}

/** Writes of records that are carried: they come with the dates that they had, and so do the tombstones of others. */
function createExactWrites(
  sql: ReturnType<typeof prepareWrites>,
  parts: Pick<ReturnType<typeof createPartWriter>, 'touchPart'>,
  tracker: ChangeTracker,
  insert: (record: RecordToStore, changed: number) => void,
) {
  return {
    /** Stores a record, whether or not one is held; `changed` is its Last-Modified, unix seconds, even if that goes back. */
    putRecord(record: RecordToStore, changed: number): void {
      parts.touchPart(record.id)
      const { id, modified, sha256 } = record
      const held = sql.bodyOf.get(id)
      if (tracker.isComplete())
        tracker.record(id, held ? stateOf(held[2], held[3]) : null, stateOf(modified, sha256))
      if (held !== undefined) {
        sql.removeBody.run(id)
        sql.remove.run(id)
      }
      insert(record, changed)
    },
    /** Removes a record and leaves no tombstone. Tolerates one that is not held. */
    dropRecord(id: string): void {
      const held = sql.bodyOf.get(id)
      if (held === undefined) return
      parts.touchPart(id)
      tracker.record(id, stateOf(held[2], held[3]), null)
      sql.removeBody.run(id)
      sql.remove.run(id)
    },
  }
}

/** Writes of the ids that upstream lists and a partial snapshot does not have. */
function createMissingWrites(db: Db) {
  const clear = db.prepare('DELETE FROM osv_missing')
  const add = db.prepare('INSERT OR IGNORE INTO osv_missing (id) VALUES (?)')
  return {
    clearMissing: (): void => {
      clear.run()
    },
    addMissing: (id: string): void => {
      add.run(id)
    },
  }
}

/** What makes a record another one for its readers: its bytes, and the stamp that the index gives it. */
function stateOf(modified: string, sha256: Buffer): string {
  return `${sha256.toString('base64')} ${modified}`
}

function prepareWrites(db: Db) {
  return {
    body: db.prepare('INSERT INTO osv_body (bytes) VALUES (?)'),
    insert: db.prepare(
      `INSERT INTO osv_record (id, body, modified, crc32, size, sha256, changed, as_of, body_crc32)
       VALUES (?, ?, ?, ?, ?, ?, ?, ?, ?)`,
    ),
    bodyOf: db
      .prepare<[string], [number, number, string, Buffer]>(
        'SELECT body, changed, modified, sha256 FROM osv_record WHERE id = ?',
      )
      .raw(),
    updateBody: db.prepare('UPDATE osv_body SET bytes = ? WHERE rowid = ?'),
    update: db.prepare(
      `UPDATE osv_record SET body = ?, modified = ?, crc32 = ?, size = ?, sha256 = ?, changed = ?,
         as_of = ?, body_crc32 = ? WHERE id = ?`,
    ),
    mark: db.prepare('UPDATE osv_record SET modified = ? WHERE id = ?'),
    removeBody: db.prepare(
      'DELETE FROM osv_body WHERE rowid = (SELECT body FROM osv_record WHERE id = ?)',
    ),
    remove: db.prepare('DELETE FROM osv_record WHERE id = ?'),
    bury: db.prepare(
      'INSERT OR REPLACE INTO osv_tombstone (id, removed_at, run_id) VALUES (?, ?, ?)',
    ),
    forget: db.prepare(
      `DELETE FROM osv_tombstone WHERE removed_at < ? OR EXISTS
         (SELECT 1 FROM osv_record WHERE osv_record.id = osv_tombstone.id)`,
    ),
    trust: db.prepare('DELETE FROM osv_doubted'),
    doubt: db.prepare('INSERT OR IGNORE INTO osv_doubted SELECT id FROM osv_record WHERE id = ?'),
    archive: db.prepare(
      `INSERT OR REPLACE INTO osv_archive (only, file, size, crc32c, sha256, changed)
       VALUES (1, @file, @size, @crc32c, @sha256, @changed)`,
    ),
  }
}

/**
 * A waiting room for records fetched one by one: a temporary table, so that nothing locks the database while the
 * network is slow, and memory does not follow their number. Gone with the connection.
 */
export function createStaging(db: Db) {
  db.exec(
    `CREATE TEMP TABLE IF NOT EXISTS staged (
       id TEXT PRIMARY KEY, modified TEXT, crc32 INTEGER, size INTEGER, sha256 BLOB, body BLOB, asOf INTEGER
     )`,
  )
  const put = db.prepare(
    `INSERT OR REPLACE INTO staged (id, modified, crc32, size, sha256, body, asOf)
     VALUES (@id, @modified, @crc32, @size, @sha256, @body, @asOf)`,
  )
  const ids = db.prepare<[], string>('SELECT id FROM staged').pluck()
  const take = db.prepare<[string], RecordToStore>('SELECT * FROM staged WHERE id = ?')
  const any = db.prepare<[], number>('SELECT EXISTS (SELECT 1 FROM staged)').pluck()
  const clear = db.prepare('DELETE FROM staged')
  return {
    stage: (record: RecordToStore): void => {
      put.run(record)
    },
    /** Calls `use` with each staged record; one in memory at a time. */
    eachStaged(use: (record: RecordToStore) => void): void {
      for (const id of ids.all()) {
        const record = take.get(id)
        if (record !== undefined) use(record)
      }
    },
    isEmpty: (): boolean => any.get() !== 1,
    clear: (): void => {
      clear.run()
    },
  }
}
