import type { Reads } from '../reads.ts'
import { isBack, scopeOfSnapshot } from '../runs/rollback.ts'
import type { LoggedSnapshot } from './log.ts'

/**
 * Why records left the mirror that are not known to be removed upstream, as with findings: by the scope, by older data, or not known, as
 * where a bundle of another mirror does not say it.
 */
export const LEFT_CAUSES = ['scope', 'rollback', 'unknown'] as const

/** Records that left by a snapshot without being known to be removed upstream. */
export interface LeftRecords {
  readonly count: number
  readonly cause: (typeof LEFT_CAUSES)[number]
}

/** What is read for it. */
export type LeftReads = Pick<Reads, 'changes' | 'osv' | 'runs' | 'snapshots'>

/** Returns how many of the records that a snapshot removed are not known to be removed upstream, and why they left; null: none. */
export function leftRecords(reads: LeftReads, row: LoggedSnapshot): LeftRecords | null {
  if (row.source !== 'osv' || row.removed === 0) return null
  const count = reads.changes.countLeft(row.id)
  return count === 0 ? null : { count, cause: causeOf(reads, row) }
}

/** Creates the function that says why a record left that a snapshot removed; null: upstream removed it, or it is there again. */
export function createLeft(reads: LeftReads) {
  const causes = new Map<string, LeftRecords['cause']>()
  return (name: string, snapshot: string): LeftRecords['cause'] | null => {
    if (reads.osv.readTombstone(name) !== null || reads.osv.readEntry(name) !== null) return null
    const known = causes.get(snapshot)
    if (known !== undefined) return known
    const place = reads.changes.findInLog(snapshot).find(({ source }) => source === 'osv')
    const row = place === undefined ? null : reads.changes.readLogged(place.after)
    const cause = row?.snapshot === snapshot ? causeOf(reads, row) : 'unknown'
    causes.set(snapshot, cause)
    return cause
  }
}

function causeOf(
  reads: LeftReads,
  { source, snapshot, previous, sequence, asOf }: LoggedSnapshot,
): LeftRecords['cause'] {
  const before = reads.changes.readLoggedSequence(source, sequence - 1)
  const from = { snapshot: previous ?? '', asOf: before?.snapshot === previous ? before.asOf : null }
  if (isBack(reads, source, from, { snapshot, asOf })) return 'rollback'
  const scope = scopeOfSnapshot(reads, source, snapshot)
  return scope === null || scope === undefined ? 'unknown' : 'scope'
}
