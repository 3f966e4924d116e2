import type { Quarantine } from '../../store/runs/quarantine.ts'
import type { SyncContext, SyncResult } from '../context.ts'
import { openApproval } from './approval.ts'
import { commitChanges } from './commit.ts'
import { planFacts, planOsv } from './diff.ts'
import { listOsv } from './fetch-index.ts'
import { fetchChanges } from './fetch-records.ts'
import { quarantineOsv, refuseIndex } from './guard.ts'
import { confirmIndex, confirmNothingNew, dryRunOutcome, isPublished, runOutcome } from './outcome.ts'
import { openScope } from './scope.ts'
import { dropDownloaded } from './upstream-archive.ts'

/**
 * Executes one run of the OSV feed: index → scope → difference → guard → records → commit (or refusal of them), or confirmation of what is
 * stored.
 * Throws when nothing could be published; `partial` when the snapshot does not contain everything that upstream lists.
 */
export async function syncOsv(given: SyncContext, approved: Quarantine | null): Promise<SyncResult> {
  const approval = openApproval(given, approved)
  const context = { ...given, kind: approval.kind }
  const { config, store, facts, dryRun } = context
  const scope = openScope(context)
  if (!dryRun) await dropDownloaded(config.data.dir)

  const listed = await listOsv(context, scope, approval)
  if (listed.index === null) return confirmNothingNew(context, approval, listed.asOf)

  const plan = planOsv(store.osv, listed.index)
  Object.assign(facts, planFacts(listed.index, plan))
  const refusal = refuseIndex(config, listed.index, plan, approval)
  if (refusal !== null) return quarantineOsv(context, listed, refusal, approval)
  if (dryRun) return dryRunOutcome(plan)

  const records = await fetchChanges(context, listed.index, plan)
  if (isPublished(context, scope, listed, plan, records)) {
    const confirmed = await confirmIndex(context, approval, listed, records)
    return runOutcome(context, listed, plan, confirmed)
  }
  const end = await commitChanges(context, { scope, approval }, listed, plan, records)
  if (end.state === 'refused') return quarantineOsv(context, listed, end, approval)
  return runOutcome(context, listed, plan, end)
}
