import { AHEAD_MS, type SourceName } from '../../base/domain/sources.ts'
import type { Db } from '../database/open.ts'
import { queries } from '../database/query.ts'

/** SQL: a run that checks only a part of its source, and proves nothing about the whole. */
export const IN_PART = "(kind = 'refresh' OR (kind = 'reconcile' AND source = 'catalog'))"

/** The last confirmation, and until when dates were not in the future of its run, Unix milliseconds. */
interface Confirmation {
  readonly at: number
  readonly until: number
  /** Its id. */
  readonly run: number
}

/** Creates reads of when the runs of a source had a result, of their order, and whether one has none yet. */
export function createRunDates(db: Db) {
  const { exists, value } = queries(db)
  const confirmed = db.prepare<{ source: string; ahead: number }, Confirmation>(
    `WITH own AS (SELECT id, as_of, ended_at FROM run WHERE source = @source AND as_of IS NOT NULL AND id >= coalesce(
         (SELECT max(id) FROM run WHERE source = @source AND kind = 'import' AND as_of IS NOT NULL), 0)),
       last AS (SELECT id, max(as_of, coalesce(ended_at, as_of) + @ahead) AS until FROM own ORDER BY id DESC LIMIT 1)
     SELECT max(own.as_of) AS at, last.until, last.id AS run FROM own, last WHERE own.as_of <= last.until GROUP BY last.id`,
  )
  const readConfirmation = (source: SourceName): Confirmation | null =>
    confirmed.get({ source, ahead: AHEAD_MS }) ?? null
  return {
    /** Id of the last run of a source before the one with this id, however it ended; null: there is none. */
    findRunBefore: value<[source: SourceName, id: number], number>(
      'SELECT max(id) FROM run WHERE source = ? AND id < ?',
    ),
    /** Reports whether a run has no end: it is running, or its process ended before it did. */
    hasOpenRun: exists<[]>('SELECT 1 FROM run WHERE ended_at IS NULL LIMIT 1'),
    /**
     * Upstream's clock at the last run that found the stored snapshot to equal upstream's; null: never. Runs before an
     * import are ignored, since they checked other data; so are dates that lie in the future of the last such run.
     */
    readConfirmedAt: (source: SourceName) => readConfirmation(source)?.at ?? null,
    /**
     * Upstream's date of a stored snapshot: its own, or the last confirmation. A wrong date in the future counts until a later run
     * confirms the data with another one.
     */
    readAsOf(source: SourceName, { asOf, runId }: { asOf: number; runId: number }): number {
      const found = readConfirmation(source)
      if (found === null) return asOf
      return asOf > found.until && found.run > runId ? found.at : Math.max(asOf, found.at)
    },
    /** When the last run of everything that was complete ended, Unix milliseconds, by the clock of then; null: never. */
    readLastSuccess: value<[source: SourceName], number>(
      `SELECT ended_at FROM run WHERE source = ? AND state = 'complete' AND NOT ${IN_PART} ORDER BY id DESC LIMIT 1`,
    ),
    /** When the last complete reconcile ended, Unix milliseconds, by the clock of then. */
    readLastReconcile: value<[source: SourceName], number>(
      "SELECT ended_at FROM run WHERE source = ? AND kind = 'reconcile' AND state = 'complete' ORDER BY id DESC LIMIT 1",
    ),
  }
}
