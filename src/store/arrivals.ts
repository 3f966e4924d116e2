import type { Db } from './database.ts'
import type { RunTrigger } from './runs.ts'

/** A tag that a published snapshot brought, or another digest of one; as upstream's own item names it. */
export interface NewTag {
  runId: number
  /** When it was published, unix milliseconds. */
  at: number
  repository: string | null
  tag: string | null
  digest: string | null
  /** Of the run that found it: `webhook` for a refresh that an event caused, `schedule` for a poll. */
  trigger: RunTrigger
}

const KEEP_MS = 30 * 86_400_000

/** Reads of what arrived; usable on any connection. */
export function createArrivalReader(db: Db) {
  const since = db.prepare<[number, number], NewTag>(
    `SELECT run_id AS runId, at, repository, tag, digest, trigger FROM catalog_arrival
     WHERE at >= ? ORDER BY at, id LIMIT ?`,
  )
  return {
    /** What arrived from a moment on (unix milliseconds, that one included), oldest first. Kept for 30 days. */
    listArrivals: (from: number, limit = 10_000): NewTag[] => since.all(from, limit),
  }
}

/** Writes of what arrived. Both belong inside the transaction that publishes it. */
export function createArrivalWriter(db: Db) {
  const add = db.prepare(
    `INSERT INTO catalog_arrival (run_id, at, repository, tag, digest, trigger)
     SELECT id, @at, @repository, @tag, @digest, trigger FROM run WHERE id = @runId`,
  )
  const prune = db.prepare('DELETE FROM catalog_arrival WHERE at < ?')
  return {
    ...createArrivalReader(db),
    /** Keeps what a run brought, and forgets what is too old. */
    addArrivals(arrivals: readonly Omit<NewTag, 'trigger'>[], now: number): void {
      for (const arrival of arrivals) add.run(arrival)
      prune.run(now - KEEP_MS)
    },
  }
}
