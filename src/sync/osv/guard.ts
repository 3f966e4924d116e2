import type { Config } from '../../config/schema.ts'
import { OSV_INDEX } from '../../domain/feed-paths.ts'
import type { SyncContext, SyncResult } from '../context.ts'
import { refuseRemoval } from '../removal-guard.ts'
import type { OsvPlan } from './diff.ts'
import type { ListedIndex } from './fetch-index.ts'
import type { OsvIndex } from './index-parser.ts'

/** Quarantines an index that would remove too many records. Returns null when the run may continue. */
export async function guardOsv(
  context: SyncContext,
  listed: ListedIndex,
  plan: OsvPlan,
): Promise<SyncResult | null> {
  const reason = removalReason(context.config, listed.index, plan)
  return reason === null ? null : quarantine(context, listed, reason)
}

function removalReason(
  { osv }: Pick<Config, 'osv'>,
  { ids, unnamed, scope }: OsvIndex,
  { stored, removed }: OsvPlan,
): string | null {
  if ((scope?.listed ?? ids).size === 0) return 'the index lists no record at all'
  if (unnamed > 0 && removed.length > 0) {
    return `${unnamed} entries have no id, so the ${removed.length} records that seem removed may be among them`
  }
  const limits = { fraction: osv.guardFraction, count: osv.guardRecords }
  return refuseRemoval(stored, removed.length, limits, 'records')
}

/** Stores the refused index for `approve`, once, even if upstream repeats it. */
async function quarantine(
  context: SyncContext,
  listed: ListedIndex,
  reason: string,
): Promise<SyncResult> {
  const { store, runId, dryRun } = context
  const { sha256 } = listed.index
  const known = store.quarantine.findQuarantine(OSV_INDEX, sha256)
  if (known === null && !dryRun) {
    const { gzip, etag, lastModified, asOf } = listed
    const kept = { runId, source: 'osv', path: OSV_INDEX, reason, sha256, body: gzip } as const
    await store.exclusive(() =>
      store.quarantine.keepQuarantine({ ...kept, etag, lastModified, asOf }),
    )
  }
  const run = known?.runId ?? runId
  context.facts['quarantine'] = run
  if (dryRun && known === null)
    return { outcome: 'quarantined', asOf: null, message: `dry run: ${reason}` }
  const decision =
    known?.decision === 'rejected' ? `rejected before (run ${run})` : `approve or reject run ${run}`
  return { outcome: 'quarantined', asOf: null, message: `${reason}; ${decision}` }
}
