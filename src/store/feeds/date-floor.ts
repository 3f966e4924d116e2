import type { Db } from '../database/sqlite.ts'

/** Creates reads of the earliest Last-Modified that is served; usable on any connection. */
export function createDateFloorReader(db: Db) {
  const read = db.prepare<[], number>('SELECT seconds FROM date_floor').pluck()
  return {
    /** Unix seconds; null: this mirror never went back to older data. */
    readDateFloor: (): number | null => read.get() ?? null,
    /** Returns the latest Last-Modified under which what has this one was served, Unix seconds; null: nothing can have been. */
    lastServed: (changed: number | null): number | null => {
      const floor = read.get() ?? null
      return changed === null || floor === null ? (changed ?? floor) : Math.max(changed, floor)
    },
  }
}

/**
 * Raises the earliest Last-Modified behind every one that was served until now (Unix milliseconds). Call it in the transaction that
 * goes back to older data, while the newer dates are stored.
 */
export function raiseDateFloor(db: Db, now: number): void {
  db.prepare(RAISE).run({ seconds: Math.floor(now / 1000) + 1 })
}

const DATED = ['document', 'osv_record', 'osv_archive', 'catalog_list', 'catalog_answer', 'catalog_document']
const NEWEST = DATED.map((table) => `coalesce((SELECT max(changed) + 1 FROM ${table}), 0)`).join(', ')
const RAISE = `INSERT INTO date_floor (only, seconds) VALUES (1, max(@seconds, ${NEWEST}))
  ON CONFLICT DO UPDATE SET seconds = max(seconds + 1, excluded.seconds)`
