import {
  type Doubt,
  type DoubtCounts,
  type DoubtedRecords,
  type PublishedDoubt,
  MOST_DOUBTED,
  doubtedKinds,
} from '../../base/domain/doubts.ts'
import type { Db } from '../database/open.ts'
import type { LogSpan } from './log.ts'

/** What a run published although its guard doubted it. */
export interface SnapshotDoubts {
  readonly run: number
  readonly doubted: DoubtedRecords
  /** How many items these are, where they are not the names themselves. */
  readonly counts?: DoubtCounts
}

interface Row {
  readonly snapshot: string
  readonly doubts: string
}

/** Creates reads of the doubts in the change log; usable on any connection. */
export function createDoubtReader(db: Db) {
  const span = db.prepare<[string, number, number], Row>(
    `SELECT snapshot, doubts FROM change_log
     WHERE source = ? AND id > ? AND id <= ? AND doubts IS NOT NULL ORDER BY id`,
  )
  const one = db.prepare<[number], string | null>('SELECT doubts FROM change_log WHERE id = ?').pluck()
  const ofSnapshot = db
    .prepare<[string, string], string>(
      `SELECT doubts FROM change_log WHERE source = ? AND snapshot = ? AND doubts IS NOT NULL ORDER BY id DESC LIMIT 1`,
    )
    .pluck()
  const sinceTime = db.prepare<[string, number], Row>(
    'SELECT snapshot, doubts FROM change_log WHERE source = ? AND published_at > ? AND doubts IS NOT NULL',
  )
  const parse = (text: string | null | undefined): SnapshotDoubts | null =>
    text === null || text === undefined ? null : (JSON.parse(text) as SnapshotDoubts)
  return {
    /** The doubts that a row of the log was published with; null: none that is known. */
    readDoubts: (id: number): SnapshotDoubts | null => parse(one.get(id)),
    /** Those of the newest row with a snapshot that has any. */
    readDoubtsOf: (source: LogSpan['source'], snapshot: string): SnapshotDoubts | null =>
      parse(ofSnapshot.get(source, snapshot)),
    /** How many items of each kind are doubted that were published since a time, Unix milliseconds. */
    countDoubts(source: LogSpan['source'], since: number): DoubtCounts {
      const found: Partial<Record<Doubt, number>> = {}
      for (const { doubts } of sinceTime.all(source, since)) {
        const { doubted, counts = {} } = JSON.parse(doubts) as SnapshotDoubts
        for (const [kind, ids] of doubtedKinds(doubted, counts))
          found[kind] = (found[kind] ?? 0) + (counts[kind] ?? ids.length)
      }
      return found
    },
    /** The names of what is doubted of each kind that was published since a time, Unix milliseconds. */
    listDoubtNames(source: LogSpan['source'], since: number): [Doubt, readonly string[]][] {
      const found = new Map<Doubt, Set<string>>()
      for (const { doubts } of sinceTime.all(source, since)) {
        const { doubted } = JSON.parse(doubts) as SnapshotDoubts
        for (const [kind, ids] of doubtedKinds(doubted)) found.set(kind, new Set([...(found.get(kind) ?? []), ...ids]))
      }
      return [...found].map(([kind, names]) => [kind, [...names]])
    },
    /** The doubts of a range by the name of the record; a range lists at most as many names as it changed. */
    listDoubts({ source, after, until }: LogSpan): ReadonlyMap<string, readonly PublishedDoubt[]> {
      const found = new Map<string, PublishedDoubt[]>()
      for (const { snapshot, doubts } of span.iterate(source, after, until)) {
        const { run, doubted } = JSON.parse(doubts) as SnapshotDoubts
        for (const [kind, ids] of doubtedKinds(doubted))
          for (const id of ids) {
            const known = found.get(id)
            if (known === undefined) found.set(id, [{ kind, snapshot, run }])
            else known.push({ kind, snapshot, run })
          }
      }
      return found
    },
  }
}

/** Reads of the doubts in the change log. */
export type DoubtReader = ReturnType<typeof createDoubtReader>

/** Creates the write of doubts; call it inside the transaction that publishes what is doubted. */
export function createDoubtWriter(db: Db) {
  const note = db.prepare('UPDATE change_log SET doubts = ? WHERE source = ? AND id > ?')
  return {
    ...createDoubtReader(db),
    /** Adds doubts to the row of a source that was logged after the row `last`; does nothing if none was. */
    noteDoubts(source: LogSpan['source'], last: number, { run, doubted, counts }: SnapshotDoubts): void {
      const kinds = doubtedKinds(doubted, counts).map(([kind, ids]) => [kind, ids.slice(0, MOST_DOUBTED)] as const)
      if (kinds.length > 0) note.run(JSON.stringify({ run, doubted: Object.fromEntries(kinds), counts }), source, last)
    },
  }
}
