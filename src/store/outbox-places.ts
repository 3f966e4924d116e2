import type { Db } from './database.ts'

/** Remembers of a mirror.db, by its instance, how far its change log was passed on. */
export const MOVE_CURSOR =
  'INSERT OR REPLACE INTO relay_cursor (only, instance, log) VALUES (1, ?, ?)'

/** Where the relay stands in the change log of a mirror.db, and from where on each target is told of it. */
export function createRelayCursors(db: Db) {
  const cursor = db
    .prepare<[string], number>('SELECT log FROM relay_cursor WHERE instance = ?')
    .pluck()
  const isNew = db.prepare<[], number>('SELECT 1 FROM relay_target WHERE log IS NULL').pluck()
  const place = db.prepare('UPDATE relay_target SET log = ? WHERE log IS NULL')
  const placeAll = db.prepare('UPDATE relay_target SET log = ?')
  const moveCursor = db.prepare(MOVE_CURSOR)
  const skip = db.transaction((instance: string, log: number): void => {
    placeAll.run(log)
    moveCursor.run(instance, log)
  })
  return {
    /** How far the change log of this mirror.db was passed on; null: never. */
    readCursor: (instance: string): number | null => cursor.get(instance) ?? null,
    /** Whether there is a target that `placeTargets` has not seen. */
    hasNewTargets: (): boolean => isNew.get() !== undefined,
    /** The log ends here: targets that are new are told of nothing before. */
    placeTargets: (log: number): void => void place.run(log),
    /** Nothing of the log up to here is passed on any more, whatever was remembered of it. */
    skipTo: (instance: string, log: number): void => skip.immediate(instance, log),
  }
}
