import { type SourceName, SOURCES } from '../../base/domain/sources.ts'
import type { Db } from '../database/open.ts'
import { CHANGE_KINDS, type LoggedSnapshot, createChangeReader } from './log.ts'
import { createSupersededWriter } from '../osv/superseded.ts'
import type { ChangeKind } from './tracker.ts'

/** A row of another mirror's change log, with its names. */
export interface AdoptedRow extends LoggedSnapshot {
  names: [name: string, kind: ChangeKind][]
}

/** Creates the takeover of another mirror's change log; call inside the transaction that publishes its data. */
export function createLogAdoption(db: Db) {
  const sql = prepare(db)
  const reader = createChangeReader(db)
  const superseded = createSupersededWriter(db)
  const cuts = createLogCuts(db)
  return {
    /**
     * Replaces the rows behind a position by those of another mirror, with their own numbers. Rows from which the log no
     * longer leads to the published snapshots are deleted: a follower that asks for them does a full read.
     */
    adoptLog(after: number, rows: readonly AdoptedRow[]): void {
      superseded.releaseReplaced(after)
      sql.dropNames.run(after)
      sql.drop.run(after)
      for (const row of rows) {
        const { names, complete, ...rest } = row
        sql.put.run({ ...rest, complete: complete ? 1 : 0 })
        for (const [name, kind] of names) sql.name.run(row.id, name, CHANGE_KINDS.indexOf(kind))
      }
      superseded.settleAdopted(after)
      cuts.forgetBroken()
      for (const source of SOURCES) settle(source)
      sql.number.run()
    },
  }

  /** Makes the newest row of a source that of its snapshot, and numbers the snapshot as that row does. */
  function settle(source: SourceName): void {
    const published = sql.snapshot.get(source)
    if (published === undefined) return
    const latest = reader.readLatestLogged(source)
    if (latest?.snapshot === published.snapshot) {
      sql.sequence.run(latest.sequence, source)
      return
    }
    cuts.forgetBefore(source, Number.MAX_SAFE_INTEGER)
    sql.unknown.run(published)
  }
}

/** Creates the deletion of rows from which the log does not lead on; call inside a transaction. */
export function createLogCuts(db: Db) {
  const dropNames = db.prepare(
    'DELETE FROM change_name WHERE log IN (SELECT id FROM change_log WHERE source = ? AND id < ?)',
  )
  const drop = db.prepare('DELETE FROM change_log WHERE source = ? AND id < ?')
  const breaks = db.prepare<[], { source: SourceName; id: number }>(
    `SELECT source, max(id) AS id FROM (
       SELECT id, source, previous, lag(snapshot) OVER (PARTITION BY source ORDER BY id) AS before
       FROM change_log)
     WHERE before IS NOT NULL AND previous IS NOT before GROUP BY source`,
  )
  const forgetBefore = (source: SourceName, id: number): void => {
    dropNames.run(source, id)
    drop.run(source, id)
  }
  return {
    /** Deletes the rows of a source before an id. */
    forgetBefore,
    /** Deletes the rows before the last that does not follow the one before it: a follower that asks for them does a full read. */
    forgetBroken(): void {
      for (const { source, id } of breaks.all()) forgetBefore(source, id)
    },
  }
}

interface Published {
  readonly source: string
  readonly snapshot: string
  readonly sequence: number
  readonly publishedAt: number
  readonly asOf: number
  readonly records: number
}

function prepare(db: Db) {
  return {
    dropNames: db.prepare('DELETE FROM change_name WHERE log > ?'),
    drop: db.prepare('DELETE FROM change_log WHERE id > ?'),
    put: db.prepare(
      `INSERT OR REPLACE INTO change_log
         (id, source, snapshot, previous, sequence, published_at, as_of, records, added, changed, removed, complete)
       VALUES (@id, @source, @snapshot, @previous, @sequence, @publishedAt, @asOf, @records, @added, @changed,
         @removed, @complete)`,
    ),
    name: db.prepare('INSERT OR REPLACE INTO change_name (log, name, kind) VALUES (?, ?, ?)'),
    snapshot: db.prepare<[string], Published>(
      `SELECT source, id AS snapshot, sequence, published_at AS publishedAt, as_of AS asOf, records
       FROM snapshot WHERE source = ?`,
    ),
    sequence: db.prepare('UPDATE snapshot SET sequence = ? WHERE source = ?'),
    unknown: db.prepare(
      `INSERT INTO change_log (source, snapshot, sequence, published_at, as_of, records, complete)
       VALUES (@source, @snapshot, @sequence, @publishedAt, @asOf, @records, 0)`,
    ),
    // The next own row continues from here: readers of events recognize deleted rows by gaps.
    number: db.prepare(
      `UPDATE sqlite_sequence SET seq = (SELECT coalesce(max(id), 0) FROM change_log)
       WHERE name = 'change_log'`,
    ),
  }
}
