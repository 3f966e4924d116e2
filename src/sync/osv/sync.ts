import type { SyncContext, SyncResult } from '../context.ts'
import { refuseRemoval } from '../removal-guard.ts'
import { dropDownloaded } from './upstream-archive.ts'
import { confirm, unchanged } from './commit.ts'
import { listOsv, quarantine } from './fetch-index.ts'
import { type OsvPlan, isEmpty, planOsv } from './diff.ts'
import type { ListedIndex } from './publish.ts'
import { syncFromRanges, syncSingles, syncFromArchive } from './strategies.ts'

/**
 * Executes one run of the OSV feed: index → difference → guard → records → proof → commit. Throws when nothing could
 * be published; `partial` when the snapshot does not contain everything that upstream lists.
 */
export async function syncOsv(
  context: SyncContext,
  approved: ListedIndex | null,
): Promise<SyncResult> {
  if (!context.dryRun) await dropDownloaded(context)
  const listed = approved ?? (await listOsv(context))
  if (listed === null) return await unchanged(context, 'upstream has nothing new')
  const plan = planOsv(context.store.osv, listed.index)
  recordPlan(context, listed, plan)
  const refusal = approved === null ? removalReason(context, listed, plan) : null
  if (refusal !== null) return quarantine(context, listed, refusal)
  if (context.dryRun) return { outcome: 'complete', asOf: null, message: dryRunMessage(plan) }
  const strategy = strategyOf(context, plan)
  if (strategy === 'nothing') return confirm(context, listed)
  context.store.osv.staging.clear()
  if (strategy === 'archive') return syncFromArchive(context, listed, plan)
  if (strategy === 'ranges') return syncFromRanges(context, listed, plan)
  return syncSingles(context, listed, plan)
}

function recordPlan({ facts }: SyncContext, { index }: ListedIndex, plan: OsvPlan): void {
  facts['listed'] = index.ids.size
  facts['added'] = plan.added.length
  facts['changed'] = plan.changed.length
  facts['removed'] = plan.removed.length
  facts['removedIds'] = plan.removed.slice(0, 20)
  if (index.duplicates > 0) facts['duplicateIds'] = index.duplicates
  if (index.unusable > 0) {
    facts['unusableEntries'] = index.unusable
    facts['unusable'] = index.skipped
  }
}

function removalReason({ config }: SyncContext, listed: ListedIndex, plan: OsvPlan): string | null {
  if (listed.index.ids.size === 0) return 'the index lists no record at all'
  const { unnamed } = listed.index
  if (unnamed > 0 && plan.removed.length > 0) {
    return `${unnamed} entries have no id, so the ${plan.removed.length} records that seem removed may be among them`
  }
  const limits = { fraction: config.osv.guardFraction, count: config.osv.guardRecords }
  return refuseRemoval(plan.stored, plan.removed.length, limits, 'records')
}

function dryRunMessage({ added, changed, removed }: OsvPlan): string {
  return `dry run: ${added.length} to add, ${changed.length} to change, ${removed.length} to remove; nothing was stored`
}

type Strategy = 'nothing' | 'singles' | 'archive' | 'ranges'

function strategyOf({ kind, full, config }: SyncContext, plan: OsvPlan): Strategy {
  if (full || plan.stored === 0) return 'archive'
  if (kind === 'reconcile') return 'ranges'
  if (isEmpty(plan)) return 'nothing'
  return plan.added.length + plan.changed.length > config.osv.archiveThreshold
    ? 'archive'
    : 'singles'
}
