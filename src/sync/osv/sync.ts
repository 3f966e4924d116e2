import type { Quarantine } from '../../store/runs/quarantine.ts'
import type { SyncContext, SyncResult } from '../context.ts'
import { commitChanges } from './commit.ts'
import { confirmIndex, confirmStored, isPublished } from './confirm.ts'
import { planFacts, planOsv } from './diff.ts'
import { fetchChanges } from './fetch-changes.ts'
import { contextOfApproval, expectNoRecords, isOfIndex, listApproved } from './approval.ts'
import { listOsv, stamped } from './fetch-index.ts'
import { guardOsv, refuseRecords } from './guard.ts'
import { dryRunOutcome, nothingNewOutcome, runOutcome } from './outcome.ts'
import { applyScope } from './scope/scope.ts'
import { dropDownloaded } from './upstream-archive.ts'

/**
 * Executes one run of the OSV feed: index → scope → difference → guard → records → commit (or refusal of them), or confirmation of what is
 * stored.
 * Throws when nothing could be published; `partial` when the snapshot does not contain everything that upstream lists.
 */
export async function syncOsv(given: SyncContext, approved: Quarantine | null): Promise<SyncResult> {
  const context = approved === null ? given : contextOfApproval(given, approved)
  if (!context.dryRun) await dropDownloaded(context.config.data.dir)
  const fetched = approved === null ? await listOsv(context) : await listApproved(context, approved)
  if (fetched.index === null) {
    await confirmStored(context)
    return nothingNewOutcome(context, fetched.asOf)
  }
  const listed = applyScope(context, stamped(context, fetched))
  const plan = planOsv(context.store.osv, listed.index)
  Object.assign(context.facts, planFacts(listed.index, plan))
  const isRemoval = approved !== null && isOfIndex(approved)
  const refused = isRemoval ? null : await guardOsv(context, listed, plan)
  if (refused !== null) return refused
  if (context.dryRun) return dryRunOutcome(plan)
  const records = await fetchChanges(context, listed, plan)
  if (isPublished(context, listed, plan, records)) {
    expectNoRecords(approved)
    return runOutcome(context, listed, plan, await confirmIndex(context, listed, records))
  }
  const published = await commitChanges(context, listed, plan, records, approved)
  if ('refusal' in published) return refuseRecords(context, listed, published, approved)
  return runOutcome(context, listed, plan, published)
}
