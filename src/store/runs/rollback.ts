import type { SourceName } from '../../base/domain/sources.ts'
import type { Reads } from '../reads.ts'

/** Data of a source: its snapshot, and upstream's date of it, Unix milliseconds; null: not known. */
export interface DatedSnapshot {
  readonly snapshot: string
  readonly asOf: number | null
}

/**
 * Whether a snapshot was published by going back to older data on purpose, as far as its run is kept. Sources that such a run
 * left as they were do not count: their runs have the mark too, and nothing that was put.
 */
export function isRollback({ runs }: Pick<Reads, 'runs'>, source: SourceName, snapshot: string): boolean {
  const facts = runs.readLatestWith(source, snapshot)?.facts
  return facts?.['rollback'] === true && facts['put'] !== undefined
}

/**
 * Returns the scope that a snapshot was made with, null for none, also of one that is not stored any more; undefined where no run of
 * it is kept.
 */
export function scopeOfSnapshot(
  { snapshots, runs }: Pick<Reads, 'snapshots' | 'runs'>,
  source: SourceName,
  snapshot: string,
): string | null | undefined {
  const stored = snapshots.readSnapshot(source)
  if (stored?.id === snapshot) return stored.scope
  const run = runs.readLatestWith(source, snapshot)
  if (run === null) return undefined
  const scope = run.facts['scope']
  return typeof scope === 'string' ? scope : null
}

/** Whether data are older than those before: by upstream's dates, also where a backup was restored, or as the run that published them says. */
export function isBack(
  reads: Pick<Reads, 'runs'>,
  source: SourceName,
  from: DatedSnapshot,
  to: DatedSnapshot,
): boolean {
  if (from.snapshot === to.snapshot) return false
  const isOlder = from.asOf !== null && to.asOf !== null && to.asOf < from.asOf
  return isOlder || isRollback(reads, source, to.snapshot)
}
