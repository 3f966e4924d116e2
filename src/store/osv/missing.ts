import type { Db } from '../database/open.ts'

/** Creates reads of what a partial snapshot lacks. */
export function createMissingReader(db: Db) {
  const missing = db.prepare<[string], number>('SELECT 1 FROM osv_missing WHERE id = ?').pluck()
  const count = db.prepare<[], number>('SELECT count(*) FROM osv_missing').pluck()
  return {
    /** Whether a record that upstream's index lists is missing in a partial snapshot. */
    isMissing: (id: string): boolean => missing.get(id) === 1,
    /** Number of listed records that are missing in a partial snapshot, or stored in an older version than listed. */
    countMissing: (): number => count.get() ?? 0,
  }
}

/** Creates reads of the listed records that are out of scope by their content. */
export function createOutsideReader(db: Db) {
  const outside = db.prepare<[string], number>('SELECT 1 FROM osv_outside WHERE id = ?').pluck()
  const all = db.prepare<[], [string, string]>('SELECT id, modified FROM osv_outside').raw()
  return {
    /** Returns whether upstream lists a record of this id whose content is out of scope. */
    isOutside: (id: string): boolean => outside.get(id) === 1,
    /** `[id, modified]` of each of them, as judged. */
    eachOutside: () => all.iterate(),
  }
}
