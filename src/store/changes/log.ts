import type { SourceName } from '../../base/domain/sources.ts'
import type { Db } from '../database/open.ts'
import { queries } from '../database/query.ts'
import type { ChangeKind } from './tracker.ts'

/** A published snapshot in the change log. */
export interface LoggedSnapshot {
  /** Counts up over all sources; never reused. */
  id: number
  source: SourceName
  /** Snapshot id, hex, and the previous one; null: there was none. */
  snapshot: string
  previous: string | null
  sequence: number
  /** Unix milliseconds, as `asOf`. */
  publishedAt: number
  asOf: number
  records: number
  /** Numbers of names added, changed and removed; null: unknown, see `complete`. */
  added: number | null
  changed: number | null
  removed: number | null
  /** False: everything may have changed, and no names were stored. */
  complete: boolean
}

/** A name that differs between two snapshots: an OSV id, or a path. */
export interface ChangedName {
  name: string
  change: ChangeKind
  /** The first row of the range that touched it. */
  log: number
  /** The snapshot that last touched it. */
  snapshot: string
  /** When that was published, Unix milliseconds. */
  publishedAt: number
}

/** A range of the log between two snapshots of a source: rows after `after` (exclusive), up to `until`. */
export interface LogSpan {
  source: SourceName
  after: number
  until: number
}

/** Numbers of names that changed in a range, counted once for each snapshot that changed them. */
export interface KindCounts {
  added: number
  changed: number
  removed: number
  /** Snapshots of which it is not known how many names they changed. */
  unknownSnapshots: number
}

/** A logged change of a name. */
interface NameChange {
  change: ChangeKind
  /** Unix milliseconds. */
  publishedAt: number
  snapshot: string
}

type Row = Omit<LoggedSnapshot, 'complete'> & { complete: number }

const COLUMNS = `id, source, snapshot, previous, sequence, published_at AS publishedAt, as_of AS asOf, records,
  added, changed, removed, complete`

/** Kinds of changes by their stored numbers. */
export const CHANGE_KINDS: readonly ChangeKind[] = ['added', 'changed', 'removed']

/** Creates reads of the change log; usable on any connection. */
export function createChangeReader(db: Db) {
  const { all } = queries(db)
  const sql = prepareReads(db)
  return {
    /** Returns where the log continues from a snapshot: one position per source that has or had it. */
    findInLog(snapshot: string): Omit<LogSpan, 'until'>[] {
      const places = new Map<SourceName, number>()
      for (const { source, id } of sql.before.all(snapshot)) places.set(source, id - 1)
      for (const { source, id } of sql.at.all(snapshot)) places.set(source, id)
      return [...places].map(([source, after]) => ({ source, after }))
    },
    /** Returns the only snapshot in the log whose id begins with `prefix`; null if there is none, or several. */
    findSnapshot(prefix: string): string | null {
      const found = sql.begun.all({ prefix, end: `${prefix}g` }) // the letter after the last hex digit
      return found.length === 1 ? (found[0] ?? null) : null
    },
    readLogged: (id: number): LoggedSnapshot | null => mapRow(sql.byId.get(id)),
    readLatestLogged: (source: SourceName): LoggedSnapshot | null => mapRow(sql.latest.get(source)),
    /** The first row of a source after a position; null at the end. */
    readNextLogged: (source: SourceName, after: number): LoggedSnapshot | null => mapRow(sql.next.get(source, after)),
    /** Rows of all sources after a position, in order. */
    listLogged: (after: number, limit: number): LoggedSnapshot[] =>
      sql.list.all(after, limit).flatMap((row) => mapRow(row) ?? []),
    /** Rows of these sources before a position, newest first. */
    listLoggedBefore: (sources: readonly SourceName[], before: number, limit: number): LoggedSnapshot[] =>
      sql.listBefore.all(JSON.stringify(sources), before, limit).flatMap((row) => mapRow(row) ?? []),
    /** The last row of a source that was published at or before a time (Unix milliseconds); null if there is none. */
    readLoggedAt: (source: SourceName, at: number): LoggedSnapshot | null => mapRow(sql.atTime.get(source, at)),
    /** The last row of a source for a number of its snapshots; null if there is none. */
    readLoggedSequence: (source: SourceName, sequence: number): LoggedSnapshot | null =>
      mapRow(sql.bySequence.get(source, sequence)),
    /** The first row after a position that changed a name; null if there is none. */
    readNextChange: (source: SourceName, name: string, after: number): number | null =>
      sql.nextOf.get(name, source, after) ?? null,
    /** The newest row's id; 0 while there is none. */
    lastLogged: (): number => sql.last.get() ?? 0,
    /** Records that a row removed, which are not there now, and of which no sync noted that upstream removed them. */
    countLeft: (id: number): number => sql.countLeft.get(id) ?? 0,
    /** Number of stored rows after a position. */
    countLogged: (after: number): number => sql.count.get(after) ?? 0,
    /** Names changed on each day (days since 1970, UTC) since a time in Unix milliseconds; rows without names count none. */
    countByDay: all<[since: number], { day: number; names: number }>(
      `SELECT published_at / 86400000 AS day, sum(coalesce(added + changed + removed, 0)) AS names
       FROM change_log WHERE published_at >= ? GROUP BY 1 ORDER BY 1`,
    ),
    /** The logged changes of one name, newest first, of a source's rows that store names. */
    listChangesOf: (source: SourceName, name: string, limit: number): NameChange[] =>
      sql.ofName.all(name, source, limit).map(({ kind, ...rest }) => {
        return { ...rest, change: CHANGE_KINDS[kind] ?? 'changed' }
      }),
    /** The names that one row changed, in order after `from`. */
    listNames: (id: number, limit: number, from = ''): Pick<ChangedName, 'name' | 'change'>[] =>
      sql.names.all(id, from, limit).map(([name, kind]) => ({ name, change: CHANGE_KINDS[kind] ?? 'changed' })),
    ...createSpanReads(sql),
  }
}

/** Creates reads of what changed in a range of the log. */
function createSpanReads(sql: ReturnType<typeof prepareReads>) {
  return {
    /** Number of names in a range, counted once per row; null if one of its rows has no names. */
    countNames({ source, after, until }: LogSpan): number | null {
      const [names, gaps] = sql.sum.get(source, after, until) ?? [0, 0]
      return (gaps ?? 0) > 0 ? null : (names ?? 0)
    },
    /** Numbers of names in a range by kind. */
    countKinds({ source, after, until }: LogSpan): KindCounts {
      const none = { added: 0, changed: 0, removed: 0, unknownSnapshots: 0 }
      return sql.kinds.get(source, after, until) ?? none
    },
    /** The last row of a range behind which every changed name is stored, and at most so many of them. */
    readNamedFrom({ source, after, until }: LogSpan, most: number): LoggedSnapshot | null {
      let names = 0
      for (const row of sql.backwards.iterate(source, after, until)) {
        names += (row.added ?? 0) + (row.changed ?? 0) + (row.removed ?? 0)
        if (row.complete === 0 || names > most) return mapRow(row)
      }
      return null
    },
    /**
     * Names that differ between the two ends of a range, in order after `from`; the cost depends on the size of the
     * range.
     */
    listChanged({ source, after, until }: LogSpan, from: string, limit: number): ChangedName[] {
      const rows = sql.folded.all({ source, after, until, from, limit })
      return rows.map(({ first, last, ...row }) => {
        return { ...row, change: foldKinds(first, last) }
      })
    },
  }
}

function foldKinds(first: number, last: number): ChangeKind {
  if (CHANGE_KINDS[first] === 'added') return 'added'
  return CHANGE_KINDS[last] === 'removed' ? 'removed' : 'changed'
}

function mapRow(row: Row | undefined): LoggedSnapshot | null {
  return row === undefined ? null : { ...row, complete: row.complete === 1 }
}

const row = (rest: string): string => `SELECT ${COLUMNS} FROM change_log ${rest}`

function prepareBackwards(db: Db) {
  return {
    kinds: db.prepare<[string, number, number], KindCounts>(
      `SELECT total(added) AS added, total(changed) AS changed, total(removed) AS removed,
         total(1 - complete) AS unknownSnapshots
       FROM change_log WHERE source = ? AND id > ? AND id <= ?`,
    ),
    listBefore: db.prepare<[string, number, number], Row>(
      row('WHERE source IN (SELECT value FROM json_each(?)) AND id < ? ORDER BY id DESC LIMIT ?'),
    ),
    bySequence: db.prepare<[string, number], Row>(row('WHERE source = ? AND sequence = ? ORDER BY id DESC LIMIT 1')),
    nextOf: db
      .prepare<[string, string, number], number | null>(
        `SELECT min(l.id) FROM change_log l JOIN change_name n ON n.log = l.id AND n.name = ?
         WHERE l.source = ? AND l.id > ?`,
      )
      .pluck(),
    backwards: db.prepare<[string, number, number], Row>(
      row('WHERE source = ? AND id > ? AND id <= ? ORDER BY id DESC'),
    ),
    countLeft: db
      .prepare<[number], number>(
        `SELECT count(*) FROM change_name n WHERE n.log = ? AND n.kind = 2
           AND NOT EXISTS (SELECT 1 FROM osv_tombstone t WHERE t.id = n.name)
           AND NOT EXISTS (SELECT 1 FROM osv_record r WHERE r.id = n.name)`,
      )
      .pluck(),
    atTime: db.prepare<[string, number], Row>(row('WHERE source = ? AND published_at <= ? ORDER BY id DESC LIMIT 1')),
  }
}

function prepareReads(db: Db) {
  type Place = Pick<LoggedSnapshot, 'source' | 'id'>
  return {
    ...prepareBackwards(db),
    at: db.prepare<[string], Place>('SELECT source, max(id) AS id FROM change_log WHERE snapshot = ? GROUP BY source'),
    before: db.prepare<[string], Place>(
      'SELECT source, max(id) AS id FROM change_log WHERE previous = ? GROUP BY source',
    ),
    begun: db
      .prepare<{ prefix: string; end: string }, string>(
        `SELECT snapshot FROM change_log WHERE snapshot >= @prefix AND snapshot < @end
         UNION SELECT previous FROM change_log WHERE previous >= @prefix AND previous < @end LIMIT 2`,
      )
      .pluck(),
    byId: db.prepare<[number], Row>(row('WHERE id = ?')),
    latest: db.prepare<[string], Row>(row('WHERE source = ? ORDER BY id DESC LIMIT 1')),
    next: db.prepare<[string, number], Row>(row('WHERE source = ? AND id > ? ORDER BY id LIMIT 1')),
    list: db.prepare<[number, number], Row>(row('WHERE id > ? ORDER BY id LIMIT ?')),
    last: db.prepare<[], number | null>('SELECT max(id) FROM change_log').pluck(),
    count: db.prepare<[number], number>('SELECT count(*) FROM change_log WHERE id > ?').pluck(),
    ofName: db.prepare<[string, string, number], Omit<NameChange, 'change'> & { readonly kind: number }>(
      `SELECT n.kind, l.published_at AS publishedAt, l.snapshot
       FROM change_log l CROSS JOIN change_name n ON n.log = l.id AND n.name = ?
       WHERE l.source = ? ORDER BY l.id DESC LIMIT ?`,
    ),
    names: db
      .prepare<[number, string, number], [string, number]>(
        'SELECT name, kind FROM change_name WHERE log = ? AND name > ? ORDER BY name LIMIT ?',
      )
      .raw(),
    sum: db
      .prepare<[string, number, number], [number | null, number | null]>(
        `SELECT sum(added + changed + removed), sum(1 - complete) FROM change_log
         WHERE source = ? AND id > ? AND id <= ?`,
      )
      .raw(),
    folded: db.prepare<
      LogSpan & { from: string; limit: number },
      Omit<ChangedName, 'change'> & { first: number; last: number }
    >(
      // The kind of the first and of the last row that touched a name, carried in the lowest bits.
      `SELECT name, first / 4 AS log, first % 4 AS first, last % 4 AS last,
         (SELECT snapshot FROM change_log WHERE id = last / 4) AS snapshot,
         (SELECT published_at FROM change_log WHERE id = last / 4) AS publishedAt
       FROM (SELECT name, min(log * 4 + kind) AS first, max(log * 4 + kind) AS last FROM change_name
             WHERE name > @from AND log IN
               (SELECT id FROM change_log WHERE source = @source AND id > @after AND id <= @until)
             GROUP BY name)
       WHERE NOT (first % 4 = 0 AND last % 4 = 2) ORDER BY name LIMIT @limit`,
    ),
  }
}
