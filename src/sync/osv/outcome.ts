import { counted } from '../../base/text.ts'
import { toIso } from '../../base/time.ts'
import type { SyncContext, SyncResult } from '../context.ts'
import type { OsvPlan } from './diff.ts'
import type { ListedIndex } from './fetch-index.ts'
import type { OsvIndex } from './index-parser.ts'
import { countLeftOut } from './scope/scope.ts'

/** The snapshot at the end of a run. */
export interface PublishedRecords {
  /** Whether the run committed it; otherwise it was published before and is confirmed. */
  committed: boolean
  /** Ids that are listed but could not be fetched → reason. */
  missing: ReadonlyMap<string, string>
  /** Says what of the committed changes is doubtful, or was approved; null: nothing. */
  doubts: string | null
}

/** Returns whether everything that the index lists is stored: nothing is missing, and no entry was skipped. */
export function isWhole({ unusable }: OsvIndex, missing: ReadonlyMap<string, string>): boolean {
  return missing.size === 0 && unusable === 0
}

/** Returns the result of a run for which upstream has nothing new, and which lists nothing. */
export function nothingNewOutcome(context: SyncContext, asOf: number): SyncResult {
  return {
    outcome: 'complete',
    asOf,
    message: `upstream has nothing new${comparedBy(context, null)}`,
  }
}

/** Returns the result of a dry run. */
export function dryRunOutcome({ added, changed, removed, dropped }: OsvPlan): SyncResult {
  const scope = dropped.length > 0 ? `, ${dropped.length} out of scope to remove` : ''
  const message = `dry run: ${added.length} to add, ${changed.length} to change, ${removed.length} to remove${scope}; nothing was stored`
  return { outcome: 'complete', asOf: null, message }
}

/**
 * Returns the result of a run that published or confirmed a snapshot, and records it in the facts: `complete` only
 * when nothing is missing and no entry was skipped.
 */
export function runOutcome(
  context: SyncContext,
  { index, asOf }: ListedIndex,
  plan: OsvPlan,
  { committed, missing, doubts }: PublishedRecords,
): SyncResult {
  const { facts } = context
  // Records that could not be fetched do not count, whatever the index lists.
  const isFetched = (id: string): boolean => !missing.has(id) && index.scope?.outside.get(id) === undefined
  const fetched = (ids: Iterable<string>): number => {
    let count = 0
    for (const id of ids) if (isFetched(id)) count++
    return count
  }
  const added = fetched(plan.added)
  const differing = Number(facts['silentChanges'] ?? 0)
  // Without stamps in the index, contents alone show the changes: none of them is silent.
  const isStamped = index.unstamped.size === 0
  const changed = fetched(plan.changed) + (isStamped ? 0 : differing)
  const silent = isStamped ? differing : 0
  Object.assign(facts, { added, changed })
  const changes = `${added} added, ${changed} changed, ${plan.removed.length} removed`
  const doubted = doubts === null ? '' : `; ${doubts}`
  const summary =
    (silent > 0 ? `${changes}, ${silent} changed under the same date` : changes) + scopedBy(context, index) + doubted
  if (isWhole(index, missing)) {
    const done = committed || !plan.isEmpty ? summary : `nothing changed${scopedBy(context, index)}`
    return { outcome: 'complete', asOf, message: done + comparedBy(context, index) }
  }
  const reasons: string[] = []
  if (missing.size > 0) {
    facts['lacking'] = missing.size
    facts['lackingIds'] = [...missing].slice(0, 20).map(([id, why]) => `${id}: ${why}`)
    reasons.push(`${missing.size} could not be fetched`)
  }
  const { unusable, skipped } = index
  if (unusable > 0) reasons.push(`${counted(unusable, 'index entry', 'index entries')} skipped (${skipped[0] ?? ''})`)
  return { outcome: 'partial', asOf, message: [summary, ...reasons].join('; ') }
}

/** Returns a note on what is out of scope, and records its number; empty without a scope. */
function scopedBy({ facts }: SyncContext, index: OsvIndex): string {
  if (index.scope === null) return ''
  const count = countLeftOut(index)
  facts['outOfScope'] = count
  const dropped = facts['removedByScope']
  const also = typeof dropped === 'number' ? `, ${dropped} of them removed by the scope` : ''
  return `; ${counted(count, 'listed record is', 'listed records are')} out of scope (osv.include, osv.exclude)${also}`
}

/** Returns a note on what a sync compared without the archive: the index's stamps, or each record where it has none. */
function comparedBy({ kind, full, facts, store }: SyncContext, index: OsvIndex | null): string {
  const isCompared = facts['archiveBytes'] !== undefined || facts['silentChanges'] !== undefined
  if (full || kind !== 'sync' || isCompared) return ''
  if (index !== null && index.unstamped.size > 0)
    return '; the index has entries without stamps: each record was fetched and compared'
  const at = store.runs.readLastReconcile('osv')
  const last =
    at === null
      ? 'contents not compared yet: the next reconcile does that (osv.reconcileSchedule, or "patchmirror sync osv --reconcile")'
      : `contents last compared (reconcile) on ${toIso(at)}`
  return `; compared by the stamps of the index, ${last}`
}
