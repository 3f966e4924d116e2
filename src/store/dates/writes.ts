import { namesFix } from '../../base/domain/named-fix.ts'
import type { Change } from '../changes/tracker.ts'
import { contentOf } from '../database/gzip.ts'
import type { Db } from '../database/open.ts'
import { type RecordDates, createDatesReader } from './reads.ts'

/** Creates writes of the dates of records. Call inside the transaction that publishes the records. */
export function createDatesWriter(db: Db) {
  const some = prepareNotes(db, 'id IN (SELECT value FROM json_each(@ids))')
  const noteAll = createWholeNote(db)
  const adopt = prepareAdoption(db)
  const settleBegun = createBegunNote(db)
  return {
    ...createDatesReader(db),
    /**
     * Notes what a snapshot that is being published changed; `at`: its publication, Unix milliseconds. Null: the changed
     * records are not known, and all are compared.
     */
    noteDates(change: Change | null, at: number): void {
      if (change?.complete !== true) noteAll(at)
      else if (change.changes.length > 0) {
        const ids = JSON.stringify(change.changes.map(([name]) => name))
        some.present.run({ ids, at })
        some.removed.run({ ids, at })
      }
      settleBegun(at)
    },
    /**
     * Merges the dates of another mirror, whose snapshot is stored: the earlier date is kept. `at`: publication of the
     * stored snapshot; `now`: no date is later.
     */
    adoptDates(dates: RecordDates, at: number, now: number): void {
      const { id, flags, removedAt, returnedAt } = dates
      const until = (date: number | null): number | null => date && Math.min(date, now)
      const first = Math.min(dates.firstSeen, now)
      const changed = Math.min(dates.changedAt, now)
      const fix = until(dates.fixSeen)
      if (removedAt === null) adopt.present.run(first, changed, fix, fix, flags, id)
      else {
        const removal = { removedAt: until(removedAt), returnedAt: until(returnedAt), at }
        adopt.any.run({ id, first, changed, fix, flags, ...removal })
      }
    },
  }
}

/** Creates the note that dates which begin after a repair are the latest ones, until a whole snapshot has been published. */
function createBegunNote(db: Db): (at: number) => void {
  const isUndated = db.prepare<[], number>("SELECT 1 FROM repair_left WHERE source = 'osv' AND undated = 1").pluck()
  const mark = db.prepare<[number]>('UPDATE osv_dates SET flags = flags | 7 WHERE first_seen = ?')
  const end = db.prepare(
    `DELETE FROM repair_left WHERE source = 'osv'
       AND EXISTS (SELECT 1 FROM snapshot WHERE source = 'osv' AND whole = 1)`,
  )
  return (at) => {
    if (isUndated.get() === undefined) return
    mark.run(at)
    end.run()
  }
}

/** Creates the comparison of all records with their dates. */
function createWholeNote(db: Db): (at: number) => void {
  const isEmpty = db.prepare<[], number>('SELECT NOT EXISTS (SELECT 1 FROM osv_dates)').pluck()
  const fill = db.prepare<{ at: number }>(
    `INSERT INTO osv_dates (id, first_seen, changed_at, fix_seen, flags, content)
     SELECT id, @at, @at, iif(fix, @at, NULL), 0, substr(sha256, 1, 8) FROM osv_record ORDER BY id`,
  )
  // Of records that differ alone: a write that changes nothing costs as much as one that does.
  const differs = `@ids IS NULL AND id IN (SELECT r.id FROM osv_record r LEFT JOIN osv_dates d ON d.id = r.id
    WHERE d.content IS NOT substr(r.sha256, 1, 8) OR (d.removed_at IS NOT NULL AND d.returned_at IS NULL))`
  const { present } = prepareNotes(db, differs)
  const { removed } = prepareNotes(db, '@ids IS NULL')
  const hasRemoved = db
    .prepare<[], number>(
      `SELECT (SELECT count(*) FROM osv_dates WHERE removed_at IS NULL OR returned_at IS NOT NULL)
         > (SELECT count(*) FROM osv_record)`,
    )
    .pluck()
  return (at) => {
    if (isEmpty.get() === 1) {
      fill.run({ at })
      return
    }
    present.run({ ids: null, at })
    if (hasRemoved.get() === 1) removed.run({ ids: null, at })
  }
}

/** Prepares the writes for what is stored, and for what is not any more, of the records that `which` selects. */
function prepareNotes(db: Db, which: string) {
  type Note = { ids: string | null; at: number }
  const isOther = 'osv_dates.content IS NOT excluded.content'
  const isGone = 'removed_at IS NOT NULL AND returned_at IS NULL'
  return {
    present: db.prepare<Note>(
      `INSERT INTO osv_dates (id, first_seen, changed_at, fix_seen, flags, content)
       SELECT id, @at, @at, iif(fix, @at, NULL), 0, substr(sha256, 1, 8) FROM osv_record WHERE ${which}
       ON CONFLICT (id) DO UPDATE SET
         changed_at = iif(${isOther}, @at, changed_at),
         fix_seen = coalesce(fix_seen, excluded.fix_seen),
         returned_at = iif(${isGone}, @at, returned_at),
         flags = iif(${isOther}, (flags & 3) | iif(content IS NULL, 4, 0), flags),
         content = excluded.content
       WHERE ${isOther} OR ${isGone}`,
    ),
    removed: db.prepare<Note>(
      `UPDATE osv_dates SET removed_at = @at, returned_at = NULL
       WHERE ${which} AND NOT (${isGone})
         AND NOT EXISTS (SELECT 1 FROM osv_record r WHERE r.id = osv_dates.id)`,
    ),
  }
}

/** Returns 1 if a stored content names a fix, 0 if not; null if it is lost or damaged. */
export function fixIn(bytes: Buffer | null, size: number | null): number | null {
  if (bytes === null || size === null) return null
  try {
    return namesFix(contentOf(bytes, size)) ? 1 : 0
  } catch {
    return null // "doctor --data" reports it
  }
}

/**
 * Prepares the merge with the dates of another mirror. The earlier of two dates is the one of the mirror that saw it first;
 * an upper bound on either side stays one. Of two removals the later is known to be the last, unless this transaction or its
 * snapshot made it: then both are the same.
 */
function prepareAdoption(db: Db) {
  type Adopted = Pick<RecordDates, 'id' | 'flags' | 'removedAt' | 'returnedAt'> & {
    first: number
    changed: number
    fix: number | null
    at: number
  }
  // Whether it is stored must be what the other mirror says.
  const isSame = `(excluded.removed_at IS NOT NULL AND excluded.returned_at IS NULL)
    = NOT EXISTS (SELECT 1 FROM osv_record r WHERE r.id = excluded.id)`
  const isNow = 'removed_at IS @at OR returned_at IS @at'
  const merged = (column: string): string => `CASE
    WHEN excluded.removed_at IS NULL OR NOT (${isSame}) THEN ${column}
    WHEN ${isNow} THEN min(coalesce(excluded.${column}, ${column}), coalesce(${column}, excluded.${column}))
    WHEN removed_at IS NULL OR excluded.removed_at > removed_at THEN excluded.${column}
    ELSE ${column} END`
  const present = db.prepare<[number, number, number | null, number | null, number, string]>(
    `UPDATE osv_dates SET first_seen = min(first_seen, ?), changed_at = min(changed_at, ?),
       fix_seen = coalesce(min(fix_seen, ?), fix_seen, ?), flags = flags | ? WHERE id = ?`,
  )
  const any = db.prepare<Adopted>(
    `INSERT INTO osv_dates (id, first_seen, changed_at, fix_seen, removed_at, returned_at, flags)
     SELECT @id, @first, @changed, @fix, @removedAt, @returnedAt, @flags
     WHERE (@removedAt IS NOT NULL AND @returnedAt IS NULL) OR EXISTS (SELECT 1 FROM osv_dates WHERE id = @id)
     ON CONFLICT (id) DO UPDATE SET
       first_seen = min(first_seen, excluded.first_seen),
       changed_at = min(changed_at, excluded.changed_at),
       fix_seen = coalesce(min(fix_seen, excluded.fix_seen), fix_seen, excluded.fix_seen),
       removed_at = ${merged('removed_at')},
       returned_at = ${merged('returned_at')},
       flags = flags | excluded.flags`,
  )
  return { present, any }
}
