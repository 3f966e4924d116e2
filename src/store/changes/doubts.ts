import {
  type Doubt,
  type DoubtCounts,
  type PublishedDoubt,
  MOST_DOUBTED,
  doubtedKinds,
  type DoubtedSnapshot,
} from '../../base/domain/doubts.ts'
import type { Db } from '../database/open.ts'
import type { LogSpan } from './log.ts'

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
  const parse = (text: string | null | undefined): DoubtedSnapshot | null =>
    text === null || text === undefined ? null : (JSON.parse(text) as DoubtedSnapshot)
  /** What is doubted of each kind and not approved, snapshot by snapshot, and how many items that is where it is not its names. */
  const doubtedSince = (source: LogSpan['source'], since: number): [Doubt, readonly string[], number | undefined][] =>
    sinceTime.all(source, since).flatMap(({ doubts }) => {
      const { doubted, counts = {}, approved = [] } = JSON.parse(doubts) as DoubtedSnapshot
      const open = doubtedKinds(doubted, counts).filter(([kind]) => !approved.includes(kind))
      return open.map(([kind, ids]): [Doubt, readonly string[], number | undefined] => [kind, ids, counts[kind]])
    })
  return {
    /** The doubts that a row of the log was published with; null: none that is known. */
    readDoubts: (id: number): DoubtedSnapshot | null => parse(one.get(id)),
    /** Those of the newest row with a snapshot that has any. */
    readDoubtsOf: (source: LogSpan['source'], snapshot: string): DoubtedSnapshot | null =>
      parse(ofSnapshot.get(source, snapshot)),
    /** How many items of each kind are doubted, and not approved, that were published since a time, Unix milliseconds. */
    countDoubts(source: LogSpan['source'], since: number): DoubtCounts {
      const found: Partial<Record<Doubt, number>> = {}
      for (const [kind, ids, count] of doubtedSince(source, since))
        found[kind] = (found[kind] ?? 0) + (count ?? ids.length)
      return found
    },
    /** The names of what is doubted of each kind, and not approved, that was published since a time, Unix milliseconds. */
    listDoubtNames(source: LogSpan['source'], since: number): [Doubt, readonly string[]][] {
      const found = new Map<Doubt, Set<string>>()
      for (const [kind, ids] of doubtedSince(source, since))
        if (ids.length > 0) found.set(kind, new Set([...(found.get(kind) ?? []), ...ids]))
      return [...found].map(([kind, names]) => [kind, [...names]])
    },
    /** The doubts of a range by the name of the record; a range lists at most as many names as it changed. */
    listDoubts({ source, after, until }: LogSpan): ReadonlyMap<string, readonly PublishedDoubt[]> {
      const found = new Map<string, PublishedDoubt[]>()
      for (const { snapshot, doubts } of span.iterate(source, after, until)) {
        const { run, doubted, approved } = JSON.parse(doubts) as DoubtedSnapshot
        for (const [kind, ids] of doubtedKinds(doubted)) {
          const doubt = { kind, snapshot, run, ...(approved?.includes(kind) === true && { approved: true as const }) }
          for (const id of ids) found.set(id, [...(found.get(id) ?? []), doubt])
        }
      }
      return found
    },
  }
}

/** Creates the write of doubts; call it inside the transaction that publishes what is doubted. */
export function createDoubtWriter(db: Db) {
  const note = db.prepare('UPDATE change_log SET doubts = ? WHERE source = ? AND id > ?')
  return {
    ...createDoubtReader(db),
    /** Adds doubts to the row of a source that was logged after the row `last`; does nothing if none was. */
    noteDoubts(source: LogSpan['source'], last: number, doubts: DoubtedSnapshot): void {
      const { doubted, counts } = doubts
      const kinds = doubtedKinds(doubted, counts).map(([kind, ids]) => [kind, ids.slice(0, MOST_DOUBTED)] as const)
      if (kinds.length > 0) note.run(JSON.stringify({ ...doubts, doubted: Object.fromEntries(kinds) }), source, last)
    },
  }
}
