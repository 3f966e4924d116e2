import { repairRecords } from '../../archive/repair.ts'
import type { Quarantine } from '../../store/runs/quarantine.ts'
import type { SyncContext, SyncResult } from '../context.ts'
import { openApproval } from './approval.ts'
import { commitChanges } from './commit.ts'
import { planFacts, planOsv } from './diff.ts'
import { type ListedIndex, listOsv } from './fetch-index.ts'
import { type FetchedRecords, fetchChanges } from './fetch-records.ts'
import { refuseIndex } from './guard.ts'
import { type OsvEnd, confirmIndex, confirmNothingNew, isPublished, resultOf } from './outcome.ts'
import { openScope } from './scope.ts'
import { dropDownloaded } from './upstream-archive.ts'

/**
 * Executes one run of the OSV feed: index → difference → guard → records → confirmation of what is published, or commit (or
 * refusal of the records) → result. Throws when nothing could be published; `partial` when the snapshot does not contain
 * everything that upstream lists.
 */
export async function syncOsv(given: SyncContext, approved: Quarantine | null): Promise<SyncResult> {
  const approval = openApproval(given, approved)
  const context = { ...given, kind: approval.kind }
  const scope = openScope(context)
  if (!context.dryRun) await dropDownloaded(context.config.data.dir)

  await repairSuspects(context)
  const listed = await listOsv(context, scope, approval)
  if (listed.index === null) return confirmNothingNew(context, approval, listed.asOf)

  const plan = planOsv(context.store.osv, listed.index)
  Object.assign(context.facts, planFacts(listed.index, plan))

  const apply = async (): Promise<OsvEnd> => {
    const refusal = refuseIndex(context, listed.index, plan, approval)
    if (refusal !== null) return refusal
    if (context.dryRun) return { state: 'planned' }
    const records = await fetchChanges(context, listed.index, plan)
    const known = withoutDoubted(context, listed, records)
    if (isPublished(context, scope, known, plan, records)) return confirmIndex(context, approval, known, records)
    return commitChanges(context, { scope, approval }, known, plan, records)
  }
  return resultOf(context, approval, listed, plan, await apply())
}

/**
 * Forgets the validators of a confirmed index that lacks records of the archive, or, once a day by a reconcile, that lists records which
 * are missing, so that the next run asks for all of it: an ETag that stays while the index changes would confirm it for ever.
 */
function withoutDoubted({ kind, facts }: SyncContext, listed: ListedIndex, records: FetchedRecords): ListedIndex {
  const lacks = kind === 'reconcile' && records.place !== 'archive' && records.result.missing.size > 0
  const isDoubted = lacks || facts['unlistedMembers'] !== undefined
  return listed.stored && isDoubted ? { ...listed, etag: null, lastModified: null } : listed
}

/** Puts damaged records back from the archive: what upstream serves now may have to wait for a decision. */
async function repairSuspects({ kind, dryRun, suspectIds, store, config }: SyncContext): Promise<void> {
  if (kind !== 'repair' || dryRun || suspectIds.size === 0) return
  await store.exclusive(() => repairRecords(store.osv, config.data.dir, [...suspectIds]))
}
