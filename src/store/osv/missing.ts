import type { Db } from '../database/open.ts'
import { queries } from '../database/query.ts'

/** Creates reads of what a partial snapshot lacks. */
export function createMissingReader(db: Db) {
  const { exists } = queries(db)
  const count = db.prepare<[], number>('SELECT count(*) FROM osv_missing').pluck()
  return {
    /** Whether a record that upstream's index lists is missing in a partial snapshot. */
    isMissing: exists<[id: string]>('SELECT 1 FROM osv_missing WHERE id = ?'),
    /** Number of listed records that are missing in a partial snapshot, or stored in an older version than listed. */
    countMissing: (): number => count.get() ?? 0,
  }
}

/** Creates reads of the listed records that are out of scope by their content. */
export function createOutsideReader(db: Db) {
  const { exists } = queries(db)
  const all = db.prepare<[], [string, string]>('SELECT id, modified FROM osv_outside').raw()
  return {
    /** Returns whether upstream lists a record of this id whose content is out of scope. */
    isOutside: exists<[id: string]>('SELECT 1 FROM osv_outside WHERE id = ?'),
    /** `[id, modified]` of each of them, as judged. */
    eachOutside: () => all.iterate(),
  }
}
