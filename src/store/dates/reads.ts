import type { Db } from '../database/open.ts'
import { queries } from '../database/query.ts'

/** What a date of a record is: not when it was, but when it was at the latest (`flags`). */
export const AT_LATEST = { firstSeen: 1, fixSeen: 2, changedAt: 4 } as const

/** Since when a record is known. Times are publications of snapshots, Unix milliseconds. */
export interface RecordDates {
  readonly id: string
  readonly firstSeen: number
  /** When its content last became another one; `firstSeen` if it never did. */
  readonly changedAt: number
  /** When it first named a fix; null: it never did, or, with the flag, it is unknown. */
  readonly fixSeen: number | null
  /** The last removal; null: none. */
  readonly removedAt: number | null
  /** When it was there again after that; null: it was not. */
  readonly returnedAt: number | null
  /** Sum of `AT_LATEST` of the dates that are upper bounds. */
  readonly flags: number
}

const COLUMNS = `id, first_seen AS firstSeen, changed_at AS changedAt, fix_seen AS fixSeen, removed_at AS removedAt,
  returned_at AS returnedAt, flags`

/** Rows per query: between two queries the connection is free. */
const PAGE = 2_000

/** Creates reads of the dates of records; usable on any connection. */
export function createDatesReader(db: Db) {
  const { one } = queries(db)
  const page = db.prepare<[string, number], RecordDates>(
    `SELECT ${COLUMNS} FROM osv_dates WHERE id > ? ORDER BY id LIMIT ?`,
  )
  return {
    /** Null: no snapshot of this mirror ever had a record of this id. */
    readDates: one<[id: string], RecordDates>(`SELECT ${COLUMNS} FROM osv_dates WHERE id = ?`),
    /** Yields the dates of all records, also of removed ones, in the order of their ids. */
    *eachDates(): Generator<RecordDates> {
      for (let after = ''; ;) {
        const rows = page.all(after, PAGE)
        yield* rows
        const last = rows.at(-1)
        if (last === undefined || rows.length < PAGE) return
        after = last.id
      }
    },
  }
}

/** Returns whether a record with these dates is on the mirror now. */
export function isOnMirror({ removedAt, returnedAt }: RecordDates): boolean {
  return removedAt === null || returnedAt !== null
}
