import { counted, nounOf } from '../../base/text.ts'
import { ownsResource } from '../../base/domain/resources.ts'
import type { SourceName } from '../../base/domain/sources.ts'
import type { SourceStatus } from '../../base/reports/sources.ts'
import type { Reads } from '../../store/reads.ts'

/** What a snapshot lacks of what upstream listed when it was made; null: not known here, as where a partial one was imported. */
export type MissingParts = Pick<SourceStatus, 'partial' | 'missing'>

const NOTHING: MissingParts = { partial: false, missing: 0 }

type MissingReads = Pick<Reads, 'snapshots' | 'runs' | 'osv' | 'catalog'>

/**
 * Returns what a snapshot of a source lacks. One that was replaced meanwhile, such as that of views not yet made again,
 * lacks at least what the stored one does: nothing that could not be fetched is in it either.
 */
export function missingOf(reads: MissingReads, source: SourceName, snapshot?: string): MissingParts {
  const stored = reads.snapshots.readSnapshot(source)
  if (stored === null) return { partial: false, missing: null }
  if (!stored.whole) return { partial: true, missing: countMissing(reads, source, stored.id) }
  if (snapshot === undefined || snapshot === stored.id) return NOTHING
  const wasPartial = reads.runs.readLatestWith(source, snapshot)?.state === 'partial'
  return wasPartial ? { partial: true, missing: null } : NOTHING
}

/** Says it in words; null where nothing is missing. */
export function describeMissing(source: SourceName, { partial, missing }: MissingParts): string | null {
  if (!partial) return null
  const thing = THINGS[source]
  if (missing === null) return `partial: some ${thing}s are missing or outdated, it is not known how many`
  return `partial: ${counted(missing, thing)} ${nounOf(missing, 'is', 'are')} missing or outdated`
}

const THINGS: Readonly<Record<SourceName, string>> = {
  osv: 'listed record',
  feeds: 'document',
  catalog: 'path',
  identity: 'path',
}

function countMissing(reads: MissingReads, source: SourceName, snapshot: string): number | null {
  const run = reads.runs.readLatestWith(source, snapshot)
  if (source === 'feeds') return listLength(run?.facts['failed'])
  if (source !== 'osv') {
    const own = reads.catalog.countMissingPaths().filter(({ resource }) => ownsResource(source, resource))
    return own.reduce((sum, { paths }) => sum + paths, 0) || null
  }
  if (run?.state !== 'partial') return null
  // Entries of the index that name no usable record are in none of the stored tables.
  const count = reads.osv.countMissing() + Number(run.facts['unusableEntries'] ?? 0)
  return count === 0 ? null : count
}

function listLength(fact: unknown): number | null {
  return Array.isArray(fact) && fact.length > 0 ? fact.length : null
}
