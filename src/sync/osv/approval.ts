import { sha256Of } from '../../base/digest.ts'
import { MirrorError } from '../../base/errors.ts'
import { OSV_INDEX } from '../../base/domain/feed-paths.ts'
import type { GuardVerdict } from '../../guard/verdict.ts'
import { contentOf, sizeOf } from '../../store/database/gzip.ts'
import type { Quarantine } from '../../store/runs/quarantine.ts'
import type { SyncContext } from '../context.ts'
import { type ListedIndex, approvedIndex, listOsv } from './fetch-index.ts'

/** Reports whether a quarantine is about what an index would remove; otherwise it is about contents of records. */
export function isOfIndex({ sha256, body }: Quarantine): boolean {
  return sha256Of(contentOf(body, sizeOf(body))).equals(sha256)
}

/**
 * Returns the index to apply for an approval: the refused one where its removals were approved and nothing was published
 * since; else upstream's, so that no older state replaces a newer one. Throws when upstream does not serve what was refused.
 */
export async function listApproved(context: SyncContext, approved: Quarantine): Promise<ListedIndex> {
  const ofIndex = isOfIndex(approved)
  if (ofIndex && approved.runId > publishedBy(context)) return approvedIndex(approved)
  const fetched = await listOsv(context)
  if (fetched.index === null) throw isGone(approved)
  if (ofIndex && !fetched.index.sha256.equals(approved.sha256)) throw isGone(approved)
  return fetched
}

/** Returns the run that published the snapshot; 0: none did. */
function publishedBy({ store }: Pick<SyncContext, 'store'>): number {
  return store.snapshots.readSnapshot('osv')?.runId ?? 0
}

/** Reports whether an operator approved the removals of exactly this index, and nothing was published since. */
export function isRemovalApproved(context: SyncContext, sha256: Buffer): boolean {
  return context.store.quarantine.isApprovedSince(OSV_INDEX, sha256, publishedBy(context))
}

/** Remembers that the removals of an index are approved, where its records then need an approval of their own. */
export async function keepRemovalApproval({ store, now }: SyncContext, { runId }: Quarantine): Promise<void> {
  await store.exclusive(() => store.quarantine.decideQuarantine(runId, 'approved', now()))
}

/**
 * Reports whether a run may publish its records: none is refused, or an operator approved exactly these. Throws when the
 * run is to apply an approval of records, and nothing that it fetched is refused.
 */
export function isAdmitted(verdict: GuardVerdict | null, approved: Quarantine | null): boolean {
  if (verdict === null || approved?.sha256.equals(verdict.identity) === true) return true
  if (verdict.refusal !== null) return false
  expectNoRecords(approved)
  return true
}

/** Throws when a run that found nothing to publish or to refuse is to apply an approval of records. */
export function expectNoRecords(approved: Quarantine | null): void {
  if (approved !== null && !isOfIndex(approved)) throw isGone(approved)
}

function isGone({ runId }: Quarantine): MirrorError {
  const message = `upstream serves something else now than run ${runId} refused, so nothing was published: run "patchmirror sync osv" for what it serves`
  return new MirrorError('usage', message)
}

/**
 * Returns the context of a run that applies what another one refused. Where that one compared contents, so must this one:
 * the index does not say which of them changed.
 */
export function contextOfApproval(context: SyncContext, { runId }: Quarantine): SyncContext {
  const compared = context.store.runs.readRun(runId)?.facts['silentChanges'] !== undefined
  return compared ? { ...context, kind: 'reconcile' } : context
}

/**
 * Reports whether this run can close the open quarantine of the index. One about contents that changed silently needs a
 * comparison of contents, which alone can say that upstream does not serve them any more.
 */
export function closesQuarantine({ store, kind, facts }: SyncContext): boolean {
  const open = store.quarantine.listOpenQuarantines().find(({ path }) => path === OSV_INDEX)
  if (open === undefined) return false
  const silent = Number(store.runs.readRun(open.runId)?.facts['silentChanges'] ?? 0)
  return silent === 0 || kind === 'reconcile' || facts['silentChanges'] !== undefined
}
