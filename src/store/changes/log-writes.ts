import { DAY_MS } from '../../base/time.ts'
import type { Config } from '../../config/schema.ts'
import type { SourceName } from '../../base/domain/sources.ts'
import type { Db } from '../database/open.ts'
import { createLogCuts } from './log-adoption.ts'
import { type LoggedSnapshot, CHANGE_KINDS, createChangeReader } from './log.ts'
import { createSupersededWriter } from '../osv/superseded.ts'
import type { Change, ChangeKind } from './tracker.ts'

/** A snapshot to be logged. */
type SnapshotToLog = Omit<LoggedSnapshot, 'id' | 'added' | 'changed' | 'removed' | 'complete'>

/** How long changes and superseded records are kept. */
type KeepTimes = {
  readonly data: Pick<Config['data'], 'historyDays'>
}

/** Largest number of snapshots, and of their names together, in the log of a source. */
const MAX_ROWS = 5_000
const MAX_NAMES = 200_000

/** Creates writes of the change log; call each inside a transaction of the caller's. */
export function createChangeWriter(db: Db) {
  const sql = prepareWrites(db)
  const superseded = createSupersededWriter(db)
  const cuts = createLogCuts(db)
  /**
   * Deletes a source's oldest rows: those before the first that was published at `before` (Unix milliseconds) or later, and
   * those over the limits. So a row that a clock which was behind dated takes no earlier one with it. Its newest row is never
   * deleted.
   */
  const forgetChanges = (source: SourceName, before: number): void => {
    const upTo = sql.oldest.get({ source, before, rows: MAX_ROWS, names: MAX_NAMES }) ?? null
    if (upTo !== null) cuts.forgetBefore(source, upTo + 1)
  }
  return {
    ...createChangeReader(db),
    forgetChanges,
    dropVersions: superseded.dropVersions,
    /** Drops the versions that the open transaction replaced, where it publishes what was published before. */
    dropUnpublished: (): void => superseded.settleReplaced(null),
    /** Logs a snapshot that is being published, and its changes. No names are stored for a source's first snapshot. */
    logSnapshot(snapshot: SnapshotToLog, { complete, changes }: Change): void {
      const known = complete && snapshot.previous !== null
      const count = (kind: ChangeKind): number | null =>
        known ? changes.filter(([, one]) => one === kind).length : null
      const counts = {
        added: count('added'),
        changed: count('changed'),
        removed: count('removed'),
        complete: known ? 1 : 0,
      }
      const log = Number(sql.log.run({ ...snapshot, ...counts }).lastInsertRowid)
      if (known) for (const [name, kind] of changes) sql.name.run(log, name, CHANGE_KINDS.indexOf(kind))
      if (snapshot.source === 'osv') superseded.settleReplaced(known ? log : null)
    },
    /**
     * Deletes old changes by the settings and a time (`timeOfAges`), and superseded records: they lead to nothing without the rows
     * that replaced them.
     */
    forgetOldChanges(source: SourceName, time: number, { data }: KeepTimes): void {
      const before = time - data.historyDays * DAY_MS
      forgetChanges(source, before)
      if (source === 'osv') superseded.forgetReplaced(before)
    },
  }
}

function prepareWrites(db: Db) {
  return {
    log: db.prepare(
      `INSERT INTO change_log
         (source, snapshot, previous, sequence, published_at, as_of, records, added, changed, removed, complete)
       VALUES (@source, @snapshot, @previous, @sequence, @publishedAt, @asOf, @records,
         @added, @changed, @removed, @complete)`,
    ),
    name: db.prepare('INSERT INTO change_name (log, name, kind) VALUES (?, ?, ?)'),
    oldest: db
      .prepare<{ source: string; before: number; rows: number; names: number }, number | null>(
        `SELECT max(id) FROM (
           SELECT id, published_at, row_number() OVER newest AS place,
             sum(coalesce(added + changed + removed, 0)) OVER newest AS names
           FROM change_log WHERE source = @source WINDOW newest AS (ORDER BY id DESC))
         WHERE place > 1 AND (id < coalesce((SELECT min(id) FROM change_log
             WHERE source = @source AND published_at >= @before), 9223372036854775807) OR place > @rows OR names > @names)`,
      )
      .pluck(),
  }
}
