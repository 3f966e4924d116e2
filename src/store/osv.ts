import type { Db } from './database.ts'
import { createPartReader, createPartWriter } from './parts.ts'

/** What is served for one record. */
export interface StoredRecord {
  /** A gzip member of upstream's bytes. */
  body: Buffer
  /** Bytes of the content. */
  size: number
  sha256: Buffer
  /** Last-Modified, unix seconds. */
  changed: number
}

/** A record as the serving side wants it: read in one step, its digest as text. */
export interface ServedRecord {
  /** A gzip member of upstream's bytes; null when the row is there and its bytes are lost. */
  body: Buffer | null
  /** Bytes of the content. */
  size: number
  /** The first 16 bytes of the content's SHA-256, hex. */
  tag: string
  /** Last-Modified, unix seconds. */
  changed: number
}

/** What a diff or a comparison needs of a record, without its bytes. */
export interface RecordEntry {
  id: string
  modified: string
  crc32: number
  size: number
  /** Upstream's date of the bytes held, unix milliseconds; null: unknown. */
  asOf: number | null
}

/** Ids and stamps of some records. A stamp that holds a NUL itself shows by the count. */
export interface PairText {
  text: Buffer
  records: number
}

/** A record to store; `asOf` as above. */
export interface RecordToStore {
  id: string
  modified: string
  crc32: number
  sha256: Buffer
  size: number
  body: Buffer
  asOf: number | null
}

/** What is remembered of a record that is gone. */
export interface Tombstone {
  id: string
  /** Unix milliseconds. */
  removedAt: number
}

/** The derived all.zip of the snapshot: `file` is a name in the derived folder. */
export interface ArchiveInfo {
  file: string
  size: number
  crc32c: number
  /**
   * Hex: over the SHA-256 of each part and of what follows them (`digestOfParts`). Of an archive without parts, as
   * earlier versions published it: of all its bytes.
   */
  sha256: string
  changed: number
}

const ENTRY = 'id, modified, crc32, size, as_of AS asOf'

/** Reads of OSV records; usable on any connection. */
export function createOsvReader(db: Db) {
  const record = db.prepare<[string], StoredRecord>(
    `SELECT b.bytes AS body, r.size, r.sha256, r.changed
     FROM osv_record r JOIN osv_body b ON b.rowid = r.body WHERE r.id = ?`,
  )
  // A scalar subquery, not a join: measured three times as fast for a point read of a kilobyte blob.
  const served = db.prepare<[string], ServedRecord>(
    `SELECT (SELECT bytes FROM osv_body WHERE rowid = r.body) AS body, r.size,
       lower(hex(substr(r.sha256, 1, 16))) AS tag, r.changed FROM osv_record r WHERE r.id = ?`,
  )
  const entry = db.prepare<[string], RecordEntry>(`SELECT ${ENTRY} FROM osv_record WHERE id = ?`)
  const contents = prepareContents(db)
  const sums = db
    .prepare<[], [string, number, number, Buffer, Buffer | null, string]>(
      `SELECT r.id, r.crc32, r.size, r.sha256, b.bytes, r.modified
       FROM osv_record r LEFT JOIN osv_body b ON b.rowid = r.body`,
    )
    .raw()
  const complete = db
    .prepare<[], number>('SELECT count(*) FROM osv_record r JOIN osv_body b ON b.rowid = r.body')
    .pluck()
  const idBytes = db
    .prepare<[], number | null>('SELECT sum(octet_length(id)) FROM osv_record')
    .pluck()
  const count = db.prepare<[], number>('SELECT count(*) FROM osv_record').pluck()
  const tombstone = db.prepare<[string], Tombstone>(
    'SELECT id, removed_at AS removedAt FROM osv_tombstone WHERE id = ?',
  )
  const archive = db.prepare<[], ArchiveInfo>(
    'SELECT file, size, crc32c, sha256, changed FROM osv_archive',
  )
  return {
    ...createPartReader(db),
    ...createPairReader(db),
    readRecord: (id: string): StoredRecord | null => record.get(id) ?? null,
    readServed: (id: string): ServedRecord | null => served.get(id) ?? null,
    readEntry: (id: string): RecordEntry | null => entry.get(id) ?? null,
    /**
     * `[id, crc32, size, body]` of every record, in id order: what an archive is made of. `from` (inclusive) and
     * `before` (null: to the end) narrow the range.
     */
    eachContent: (from = '', before: string | null = null) =>
      before === null ? contents.all.iterate(from) : contents.range.iterate(from, before),
    /** `[id, crc32, size, sha256, body, modified]` of every record, for verification; body null when it is lost. */
    eachSum: () => sums.iterate(),
    countRecords: (): number => count.get() ?? 0,
    /** Records whose bytes are there: differs from `countRecords` only in a database altered from outside. */
    countBodies: (): number => complete.get() ?? 0,
    /** UTF-8 bytes of all ids together: tells how large a central directory must be. */
    sumIdBytes: (): number => idBytes.get() ?? 0,
    readTombstone: (id: string): Tombstone | null => tombstone.get(id) ?? null,
    readArchive: (): ArchiveInfo | null => archive.get() ?? null,
  }
}

function createPairReader(db: Db) {
  const pairs = db.prepare<[], [string, string]>('SELECT id, modified FROM osv_record').raw()
  const texts = db
    .prepare<[string], [Buffer | null, number, string | null]>(
      `SELECT CAST(group_concat(id || char(0) || modified || char(0), '') AS BLOB), count(*), max(id)
       FROM (SELECT id, modified FROM osv_record WHERE id > ? ORDER BY id LIMIT 4096)`,
    )
    .raw()
  return {
    /** `[id, modified]` of every record, in id order. */
    eachPair: () => pairs.iterate(),
    /** The same some thousand records at a time, as one text each: id, NUL, modified, NUL, and so on, in UTF-8. */
    *eachPairText(): Generator<PairText> {
      for (let after = ''; ;) {
        const [text, records, last] = texts.get(after) ?? [null, 0, null]
        if (text === null || last === null) return
        yield { text, records }
        after = last
      }
    },
  }
}

function prepareContents(db: Db) {
  type Row = [string, number, number, Buffer]
  const select =
    'SELECT r.id, r.crc32, r.size, b.bytes FROM osv_record r JOIN osv_body b ON b.rowid = r.body WHERE r.id >= ?'
  return {
    all: db.prepare<[string], Row>(`${select} ORDER BY r.id`).raw(),
    range: db.prepare<[string, string], Row>(`${select} AND r.id < ? ORDER BY r.id`).raw(),
  }
}

/** Writes of OSV records. Call inside a transaction of the caller's. */
export function createOsvWriter(db: Db) {
  const sql = prepareWrites(db)
  const parts = createPartWriter(db)
  return {
    ...createOsvReader(db),
    ...parts,
    /** Stores a record where none is held at all, and so no archive in parts either. `changed` in unix seconds. */
    insertRecord(record: RecordToStore, changed: number): void {
      const rowid = sql.body.run(record.body).lastInsertRowid
      const { id, modified, crc32, size, sha256, asOf } = record
      sql.insert.run(id, rowid, modified, crc32, size, sha256, changed, asOf)
    },
    /** Replaces a held record's bytes; its Last-Modified moves forward by at least a second. */
    updateRecord(record: RecordToStore, changed: number): void {
      parts.touchPart(record.id)
      const held = sql.bodyOf.get(record.id)
      if (held === undefined) return this.insertRecord(record, changed)
      const { id, modified, crc32, size, sha256, asOf } = record
      const forward = Math.max(changed, held[1] + 1)
      const { changes } = sql.updateBody.run(record.body, held[0])
      // Its bytes were lost: they get a row of their own, the old number may be another record's by now.
      const rowid = changes > 0 ? held[0] : sql.body.run(record.body).lastInsertRowid
      sql.update.run(rowid, modified, crc32, size, sha256, forward, asOf, id)
    },
    /** The bytes stay, the index's stamp is new. */
    markRecord: (id: string, modified: string): void => {
      sql.mark.run(modified, id)
    },
    /** Removes a record and leaves a tombstone. */
    removeRecord(id: string, runId: number, now: number): void {
      parts.touchPart(id)
      sql.removeBody.run(id)
      sql.remove.run(id)
      sql.bury.run(id, now, runId)
    },
    /** Drops the tombstones that are older than `before` (unix milliseconds), and those of ids that are back. */
    forgetTombstones: (before: number): void => {
      sql.forget.run(before)
    },
    replaceArchive: (info: ArchiveInfo): void => {
      sql.archive.run(info)
    },
  }
}

function prepareWrites(db: Db) {
  return {
    body: db.prepare('INSERT INTO osv_body (bytes) VALUES (?)'),
    insert: db.prepare(
      `INSERT INTO osv_record (id, body, modified, crc32, size, sha256, changed, as_of)
       VALUES (?, ?, ?, ?, ?, ?, ?, ?)`,
    ),
    bodyOf: db
      .prepare<[string], [number, number]>('SELECT body, changed FROM osv_record WHERE id = ?')
      .raw(),
    updateBody: db.prepare('UPDATE osv_body SET bytes = ? WHERE rowid = ?'),
    update: db.prepare(
      `UPDATE osv_record SET body = ?, modified = ?, crc32 = ?, size = ?, sha256 = ?, changed = ?, as_of = ?
       WHERE id = ?`,
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
    archive: db.prepare(
      `INSERT OR REPLACE INTO osv_archive (only, file, size, crc32c, sha256, changed)
       VALUES (1, @file, @size, @crc32c, @sha256, @changed)`,
    ),
  }
}

export type OsvReader = ReturnType<typeof createOsvReader>
export type OsvWriter = ReturnType<typeof createOsvWriter>
