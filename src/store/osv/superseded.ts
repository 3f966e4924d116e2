import type { ChangeTracker } from '../changes/tracker.ts'
import type { Db } from '../database/open.ts'
import { queries } from '../database/query.ts'
import type { RecordToStore } from './reads.ts'

/** A stored record as it was before a write replaced or removed it. */
export interface ReplacedRecord {
  readonly id: string
  /** Row of its bytes. */
  readonly body: number
  /** As the served index said it. */
  readonly modified: string
  readonly sha256: Buffer
  readonly size: number
}

/** An earlier version of a record. */
interface EarlierRecord {
  /** The `modified` that the served index had for it. */
  modified: string
  /** A gzip member of upstream's bytes; null when they are those that are stored now. */
  body: Buffer | null
  /** Bytes of the content. */
  size: number
  sha256: Buffer
}

/** A superseded version with bytes of its own, and what these are checked against. */
interface SupersededVersion {
  readonly id: string
  /** The position of the change log that replaced it. */
  readonly log: number
  readonly size: number
  readonly sha256: Buffer
  /** A gzip member; null when it is lost. */
  readonly body: Buffer | null
}

/** The position of versions that the open transaction replaced and that no published snapshot names yet. */
const UNPUBLISHED = 0

/**
 * Creates the writes that replace a record's bytes: their row stays, named as a superseded version, while the change log
 * lists names; else it is used again or deleted, and followers do a full read. Call inside the caller's transaction.
 */
export function createBodyReplacement(db: Db, tracker: Pick<ChangeTracker, 'isComplete'>) {
  const sql = prepareReplacement(db)
  const keep = ({ id, modified, sha256, size }: ReplacedRecord, body: number | null): boolean =>
    sql.add.run({ id, log: UNPUBLISHED, modified, sha256, size, body }).changes > 0
  /** Of several versions within one transaction the first is kept, which was published. Equal bytes are stored once. */
  const releaseBody = (replaced: ReplacedRecord): void => {
    const { id, body, sha256 } = replaced
    const isKept = tracker.isComplete() && sql.hasBody.get(body) === 1
    const same = isKept ? sql.sameBytes.get(id, sha256) : undefined
    if (!isKept || !keep(replaced, same ?? body) || same !== undefined) sql.dropBody.run(body)
  }
  return {
    releaseBody,
    /** Stores the bytes that replace others, and returns their row. */
    replaceBody(replaced: ReplacedRecord, { body, sha256, modified }: RecordToStore): number | bigint {
      const isSame = replaced.sha256.equals(sha256)
      if (isSame && replaced.modified !== modified && tracker.isComplete()) keep(replaced, null) // its earlier stamp
      if (isSame || !tracker.isComplete()) {
        if (sql.updateBody.run(body, replaced.body).changes > 0) return replaced.body
        // Its bytes were lost: they get a new row, since another record may use the old row id now.
      } else releaseBody(replaced)
      return sql.body.run(body).lastInsertRowid
    },
  }
}

/** Creates the writes that give superseded versions their position in the change log, and that delete old ones. */
export function createSupersededWriter(db: Db) {
  const sql = prepareWrites(db)
  /** Deletes the rows of some positions, and bytes that no other version of the same record shares. */
  const drop = (upTo: number, from: number): void => {
    sql.dropBodies.run({ from, upTo })
    sql.drop.run({ from, upTo })
  }
  /** Removes versions whose bytes are not sound, each with those before it that only changed its stamp. */
  const dropVersions = db.transaction((versions: readonly Pick<SupersededVersion, 'id' | 'log'>[]): void => {
    for (const { id, log } of versions) {
      const body = sql.bodyOf.get(id, log) ?? null
      sql.dropVersion.run({ id, log })
      if (body !== null) sql.dropUnused.run({ body })
    }
  })
  return {
    // Immediate: a transaction that reads first cannot wait for another writer.
    dropVersions: (versions: Parameters<typeof dropVersions>[0]): void => dropVersions.immediate(versions),
    /**
     * Gives the versions that the open transaction replaced their position in the log; drops those of names that the log
     * does not list there. Null: it lists none.
     */
    settleReplaced(log: number | null): void {
      if (log !== null) sql.settle.run({ log })
      drop(UNPUBLISHED, UNPUBLISHED)
    },
    /** Drops the versions that a source's log no longer leads to, and those replaced before the first snapshot after a time, Unix milliseconds. */
    forgetReplaced(before: number): void {
      const upTo = sql.oldest.get({ before }) ?? null
      if (upTo !== null) drop(upTo, UNPUBLISHED + 1)
    },
    /**
     * Prepares for another mirror's log behind a position: `settleAdopted` gives what was replaced there its new place.
     * After several local snapshots it is not known which of the versions the other mirror replaced: all are dropped.
     */
    releaseReplaced(after: number): void {
      if (sql.countLogs.get(after) === 1) sql.release.run(after)
      drop(Number.MAX_SAFE_INTEGER, after + 1)
    },
    /** Gives released versions the first position behind `after` that names them; drops what none names. */
    settleAdopted(after: number): void {
      sql.adopt.run({ after })
      drop(UNPUBLISHED, UNPUBLISHED)
    },
  }
}

/** Creates the reads of superseded versions; usable on any connection. */
export function createSupersededReader(db: Db) {
  const { one } = queries(db)
  const row = db.prepare<[string, number], Omit<EarlierRecord, 'body'>>(
    'SELECT modified, size, sha256 FROM osv_superseded WHERE id = ? AND log = ?',
  )
  // A version whose bytes stayed when only its stamp changed has those of the next version that lost its own.
  const bytes = db
    .prepare<[string, number], Buffer>(
      `SELECT b.bytes FROM osv_superseded s JOIN osv_body b ON b.rowid = s.body
       WHERE s.id = ? AND s.log >= ? ORDER BY s.log LIMIT 1`,
    )
    .pluck()
  const since = db
    .prepare<[string, number], number>(
      `SELECT s.log FROM osv_superseded s JOIN change_log l ON l.id = s.log
       WHERE s.id = ? AND l.published_at > ? ORDER BY s.log LIMIT 1`,
    )
    .pluck()
  const readEarlier = (id: string, log: number): EarlierRecord | null => {
    const found = row.get(id, log)
    return found === undefined ? null : { ...found, body: bytes.get(id, log) ?? null }
  }
  const all = db.prepare<[], SupersededVersion>(
    `SELECT s.id, s.log, s.size, s.sha256, b.bytes AS body FROM osv_superseded s LEFT JOIN osv_body b ON b.rowid = s.body
     WHERE s.body IS NOT NULL`,
  )
  return {
    /** Yields every superseded version that has bytes of its own. */
    eachSuperseded: () => all.iterate(),
    /** Returns a record as it was before a position of the log replaced it; null if that version is not stored. */
    readEarlier,
    /** Returns a record as it was at a time, Unix milliseconds; null: it is as it was then, or that version is not stored. */
    readSince(id: string, time: number): EarlierRecord | null {
      const log = since.get(id, time)
      return log === undefined ? null : readEarlier(id, log)
    },
    /** Returns the last version of a record that is not stored any more; null: none is kept. */
    readRemoved: one<[id: string], { size: number; sha256: Buffer; body: Buffer }>(
      `SELECT s.size, s.sha256, b.bytes AS body FROM osv_superseded s JOIN osv_body b ON b.rowid = s.body
       WHERE s.id = ? ORDER BY s.log DESC LIMIT 1`,
    ),
  }
}

function prepareReplacement(db: Db) {
  return {
    body: db.prepare('INSERT INTO osv_body (bytes) VALUES (?)'),
    updateBody: db.prepare('UPDATE osv_body SET bytes = ? WHERE rowid = ?'),
    dropBody: db.prepare('DELETE FROM osv_body WHERE rowid = ?'),
    hasBody: db.prepare<[number], number>('SELECT 1 FROM osv_body WHERE rowid = ?').pluck(),
    sameBytes: db
      .prepare<[string, Buffer], number>(
        'SELECT body FROM osv_superseded WHERE id = ? AND sha256 = ? AND body IS NOT NULL LIMIT 1',
      )
      .pluck(),
    add: db.prepare(
      `INSERT OR IGNORE INTO osv_superseded (id, log, modified, sha256, size, body)
       VALUES (@id, @log, @modified, @sha256, @size, @body)`,
    ),
  }
}

function prepareWrites(db: Db) {
  type Span = { from: number; upTo: number }
  return {
    settle: db.prepare<[{ log: number }]>(
      `UPDATE osv_superseded SET log = @log WHERE log = ${UNPUBLISHED}
         AND EXISTS (SELECT 1 FROM change_name n WHERE n.log = @log AND n.name = osv_superseded.id)`,
    ),
    dropBodies: db.prepare<[Span]>(
      `DELETE FROM osv_body WHERE rowid IN (
         SELECT s.body FROM osv_superseded s WHERE s.log BETWEEN @from AND @upTo AND NOT EXISTS
           (SELECT 1 FROM osv_superseded o
            WHERE o.id = s.id AND o.body = s.body AND o.log NOT BETWEEN @from AND @upTo))`,
    ),
    bodyOf: db
      .prepare<[string, number], number | null>('SELECT body FROM osv_superseded WHERE id = ? AND log = ?')
      .pluck(),
    dropVersion: db.prepare<[{ id: string; log: number }]>(
      `DELETE FROM osv_superseded WHERE id = @id AND log <= @log AND log > coalesce(
         (SELECT max(log) FROM osv_superseded WHERE id = @id AND log < @log AND body IS NOT NULL), ${UNPUBLISHED - 1})`,
    ),
    dropUnused: db.prepare<[{ body: number }]>(
      // A row that was lost may be another record's by now.
      `DELETE FROM osv_body WHERE rowid = @body AND NOT EXISTS (SELECT 1 FROM osv_superseded WHERE body = @body)
         AND NOT EXISTS (SELECT 1 FROM osv_record WHERE body = @body)`,
    ),
    drop: db.prepare<[Span]>('DELETE FROM osv_superseded WHERE log BETWEEN @from AND @upTo'),
    oldest: db
      .prepare<{ before: number }, number | null>(
        `SELECT coalesce(min(iif(published_at > @before, id, NULL)) - 1, max(id)) FROM change_log WHERE source = 'osv'`,
      )
      .pluck(),
    countLogs: db.prepare<[number], number>('SELECT count(DISTINCT log) FROM osv_superseded WHERE log > ?').pluck(),
    release: db.prepare(`UPDATE osv_superseded SET log = ${UNPUBLISHED} WHERE log > ?`),
    adopt: db.prepare<[{ after: number }]>(
      `UPDATE osv_superseded SET log = f.log
       FROM (SELECT n.name, min(n.log) AS log FROM change_log l JOIN change_name n ON n.log = l.id
             WHERE l.source = 'osv' AND l.id > @after GROUP BY n.name) AS f
       WHERE osv_superseded.log = ${UNPUBLISHED} AND f.name = osv_superseded.id`,
    ),
  }
}
