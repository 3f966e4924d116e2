import { SOURCES } from '../../base/domain/sources.ts'
import type { createRunReader } from './runs.ts'
import type { createSnapshotReader } from './snapshots.ts'

/** What knows the dates of upstream's. */
interface DatedReads {
  readonly runs: Pick<ReturnType<typeof createRunReader>, 'readConfirmedAt'>
  readonly snapshots: ReturnType<typeof createSnapshotReader>
}

/**
 * Returns the time by which stored things are old enough to be deleted, Unix milliseconds: what the clock shows (`now`), or the
 * newest date of upstream's that is stored, whichever is earlier. Both have to say that time has passed: a clock that is years
 * ahead deletes nothing, and one wrong date of upstream's does not either.
 */
export function timeOfAges({ runs, snapshots }: DatedReads, now: number): number {
  const dates = SOURCES.flatMap((source) => [
    snapshots.readSnapshot(source)?.asOf ?? 0,
    runs.readConfirmedAt(source) ?? 0,
  ])
  const newest = Math.max(...dates)
  return newest === 0 ? now : Math.min(now, newest)
}
