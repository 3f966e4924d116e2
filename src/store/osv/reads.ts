import type { Db } from '../database/open.ts'
import { queries } from '../database/query.ts'
import { newestPast, olderDay, toIso } from '../../base/time.ts'
import { createPartReader } from './archive-parts.ts'
import { listUntidy } from '../database/schema/untidy-ids.ts'

/** The stored content of a record. */
interface StoredRecord {
  /** A gzip member of upstream's bytes. */
  body: Buffer
  /** Bytes of the content. */
  size: number
  sha256: Buffer
  /** As the served index says it. */
  modified: string
  /** Last-Modified, unix seconds. */
  changed: number
}

/** A record for the serving side: read in one step, its digest as text. */
export interface ServedRecord {
  /** A gzip member of upstream's bytes; null when the row exists and its bytes are lost. */
  body: Buffer | null
  /** Bytes of the content. */
  size: number
  /** The first 16 bytes of the content's SHA-256, hex. */
  tag: string
  /** Last-Modified, unix seconds. */
  changed: number
  /** CRC-32 of `body` when it was stored; null: unknown. */
  bodyCrc32: number
  /** Upstream's date of the stored bytes, Unix milliseconds; null: unknown. */
  asOf: number | null
  /** 1: upstream has another version, which could not be fetched; else 0. */
  outdated: number
}

/** A record's fields for a diff or a comparison, without its bytes. */
export interface RecordEntry {
  id: string
  modified: string
  crc32: number
  size: number
  /** Upstream's date of the stored bytes, Unix milliseconds; null: unknown. */
  asOf: number | null
}

/** A record to store. */
export interface RecordToStore extends RecordEntry {
  sha256: Buffer
  body: Buffer
  /** CRC-32 of `body`, and whether the content names a fix (`namesFix`), where they are known. */
  bodyCrc32?: number
  fix?: boolean
}

/** A record that was removed; `removedAt` in Unix milliseconds. */
interface Tombstone {
  id: string
  removedAt: number
}

/** The derived all.zip of the snapshot: `file` is a name in the derived folder. */
export interface ArchiveInfo {
  file: string
  size: number
  crc32c: number
  /** Hex, over the SHA-256 of each part and of the tail (`digestOfParts`). */
  sha256: string
  changed: number
}

const ENTRY = 'id, modified, crc32, size, as_of AS asOf'

/** Creates reads of OSV records; usable on any connection. */
export function createOsvReader(db: Db) {
  const { one, all, list, count } = queries(db)
  const contents = prepareContents(db)
  const sums = db
    .prepare<[], [string, number, number, Buffer, Buffer | null, string, number]>(
      `SELECT r.id, r.crc32, r.size, r.sha256, b.bytes, r.modified, r.body_crc32
       FROM osv_record r LEFT JOIN osv_body b ON b.rowid = r.body ORDER BY r.id`,
    )
    .raw()
  const digests = db
    .prepare<[], [string, Buffer, string]>('SELECT id, sha256, modified FROM osv_record ORDER BY id')
    .raw()
  return {
    ...createPartReader(db),
    ...createPairReader(db),
    ...createMissingReader(db),
    ...createOutsideReader(db),
    // A scalar subquery, not a join: measured three times as fast for a point read of a kilobyte blob.
    readRecord: one<[id: string], StoredRecord>(
      `SELECT (SELECT bytes FROM osv_body WHERE rowid = r.body) AS body, r.size, r.sha256, r.modified, r.changed
       FROM osv_record r WHERE r.id = ? AND r.body IN (SELECT rowid FROM osv_body)`,
    ),
    readServed: one<[id: string], ServedRecord>(
      `SELECT (SELECT bytes FROM osv_body WHERE rowid = r.body) AS body, r.size,
         lower(hex(substr(r.sha256, 1, 16))) AS tag, r.changed, r.body_crc32 AS bodyCrc32, r.as_of AS asOf,
         EXISTS (SELECT 1 FROM osv_missing WHERE id = r.id) OR EXISTS (SELECT 1 FROM osv_doubted WHERE id = r.id) AS outdated
       FROM osv_record r WHERE r.id = ?`,
    ),
    readEntry: one<[id: string], RecordEntry>(`SELECT ${ENTRY} FROM osv_record WHERE id = ?`),
    /**
     * `[id, crc32, size, body]` of every record, in id order, for building an archive, from `from` (inclusive) to
     * `before` (exclusive; null: to the end).
     */
    eachContent: (from = '', before: string | null = null) =>
      before === null ? contents.all.iterate(from) : contents.range.iterate(from, before),
    /** `[id, crc32, size, sha256, body, modified, bodyCrc32]` of every record, in id order; body null when lost. */
    eachSum: () => sums.iterate(),
    /** `[id, sha256, modified]` of every record, in id order. */
    eachDigest: () => digests.iterate(),
    countRecords: count<[]>('SELECT count(*) FROM osv_record'),
    /**
     * Number of records whose bytes are stored: differs from `countRecords` only in a database changed by other
     * programs.
     */
    countBodies: count<[]>('SELECT count(*) FROM osv_record r JOIN osv_body b ON b.rowid = r.body'),
    /** UTF-8 bytes of all ids together: determines the size of a central directory. */
    sumIdBytes: count<[]>('SELECT sum(octet_length(id)) FROM osv_record'),
    readTombstone: one<[id: string], Tombstone>('SELECT id, removed_at AS removedAt FROM osv_tombstone WHERE id = ?'),
    /** Records that were removed and are not stored again, the newest first; `kept`: 1 where a version of it may be kept. */
    listTombstones: all<[], Tombstone & { kept: number }>(
      `SELECT id, removed_at AS removedAt,
         EXISTS (SELECT 1 FROM osv_superseded WHERE osv_superseded.id = osv_tombstone.id) AS kept FROM osv_tombstone
       WHERE NOT EXISTS (SELECT 1 FROM osv_record WHERE osv_record.id = osv_tombstone.id) ORDER BY removed_at DESC, id`,
    ),
    /** Stored records whose bytes may differ from upstream's, though their `modified` is the listed one. */
    listSuspectIds: list<[], string>('SELECT id FROM osv_doubted ORDER BY id'),
    readArchive: one<[], ArchiveInfo>('SELECT file, size, crc32c, sha256, changed FROM osv_archive'),
  }
}

function createPairReader(db: Db) {
  const { list } = queries(db)
  const stamps = db.prepare<[], string>('SELECT DISTINCT modified FROM osv_record').pluck()
  const lastStamp = db
    .prepare<[string], string | null>('SELECT max(modified) FROM osv_record WHERE modified <= ?')
    .pluck()
  // Digits are from '0' to ':'.
  const lateStamps = db
    .prepare<[string], string>(
      "SELECT DISTINCT modified FROM osv_record WHERE modified >= ? OR modified < '0' OR modified >= ':'",
    )
    .pluck()
  const begun = db
    .prepare<[string, number], string>('SELECT id FROM osv_record WHERE id >= ? ORDER BY id LIMIT ?')
    .pluck()
  const pairs = db.prepare<[], [string, string]>('SELECT id, modified FROM osv_record').raw()
  return {
    /** Ids that begin with a text, in order; at most `limit`. */
    listIdsFrom: (prefix: string, limit: number): string[] =>
      begun.all(prefix, limit).filter((id) => id.startsWith(prefix)),
    /** `[id, modified]` of every record, in id order. */
    eachPair: () => pairs.iterate(),
    /** Ids that contain a space or a percent sign, or begin or end with white space; at most `limit`. */
    listUntidyIds: list<[limit: number], string>(listUntidy('osv_record')),
    /**
     * Returns the newest `modified` of the served index that is not after `now` (Unix milliseconds), in Unix seconds,
     * rounded up; null if there is none. No Last-Modified may be older, or importers would miss the change.
     */
    readNewestModified(now: number): number | null {
      // Mostly it is of these days: then one pass over the records finds it.
      const day = olderDay(now / 1000 - 86_400)
      const recent = newestPast(lateStamps.iterate(day), now)
      if (recent !== null && olderDay(recent) >= day) return recent
      const last = lastStamp.get(toIso(now)) ?? null
      const least = last === null ? null : newestPast([last], now)
      const rest = least === null ? stamps.iterate() : lateStamps.iterate(olderDay(least))
      return newestPast(rest, now)
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

export type OsvReader = ReturnType<typeof createOsvReader>

/** Creates reads of what a partial snapshot lacks. */
function createMissingReader(db: Db) {
  const { count, exists } = queries(db)
  return {
    /** Whether a record that upstream's index lists is missing in a partial snapshot. */
    isMissing: exists<[id: string]>('SELECT 1 FROM osv_missing WHERE id = ?'),
    /** Number of listed records that are missing in a partial snapshot, or stored in an older version than listed. */
    countMissing: count<[]>('SELECT count(*) FROM osv_missing'),
  }
}

/** Creates reads of the listed records that are out of scope by their content. */
function createOutsideReader(db: Db) {
  const { exists } = queries(db)
  const all = db.prepare<[], [string, string]>('SELECT id, modified FROM osv_outside').raw()
  return {
    /** Returns whether upstream lists a record of this id whose content is out of scope. */
    isOutside: exists<[id: string]>('SELECT 1 FROM osv_outside WHERE id = ?'),
    /** `[id, modified]` of each of them, as judged. */
    eachOutside: () => all.iterate(),
  }
}
