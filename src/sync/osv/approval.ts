import { sha256Of } from '../../base/digest.ts'
import { OSV_INDEX } from '../../base/domain/feed-paths.ts'
import type { GuardVerdict } from '../../guard/verdict.ts'
import { contentOf, sizeOf } from '../../store/database/gzip.ts'
import type { Quarantine } from '../../store/runs/quarantine.ts'
import type { RunKind } from '../../store/runs/runs.ts'
import type { SyncContext } from '../context.ts'
import { isGone, isNewest } from '../refusals.ts'
import { parseMember } from './index-parser.ts'
import { lackIn } from './upstream-mirror.ts'

/** What operators decided, as far as a run goes by it. */
export type Approval = ReturnType<typeof openApproval>

/** Reads what operators decided. `approved` is the refused change that the run is to apply; null: none. */
export function openApproval({ store, kind, facts, now }: SyncContext, approved: Quarantine | null) {
  const ofIndex = approved !== null && isOfIndex(approved)
  const publishedBy = store.snapshots.readSnapshot('osv')?.runId ?? 0
  const ownKind = approved === null ? kind : kindOf(approved)
  /** Throws when a run that found nothing to publish or to refuse is to apply an approval of records. */
  const expectNoRecords = (): void => {
    if (approved !== null && !ofIndex) throw isGone(approved)
  }
  return {
    /** The kind of run: one that applies an approval is of the kind that was refused. */
    kind: ownKind,
    /** Reads the refused index, whose removals were approved, if no run since found another; null: upstream's is to be applied. */
    async readIndex() {
      if (!ofIndex || !isNewest({ store }, approved)) return null
      const { body, etag, lastModified, asOf } = approved
      const index = await parseMember(body)
      index.lacks = lackIn(store.runs.readRun(approved.runId)?.facts ?? {})
      return { index, stored: false, gzip: body, etag, lastModified, asOf }
    },
    /** Throws when upstream does not serve the index that was refused. `sha256`: of the one to apply; null: nothing is new. */
    expectIndex(sha256: Buffer | null): void {
      if (approved === null) return
      if (sha256 === null || (ofIndex && !sha256.equals(approved.sha256))) throw isGone(approved)
    },
    expectNoRecords,
    /** Whether the removals of exactly this index are approved: by this run, or by an earlier one if nothing was published since. */
    allowsRemovals(sha256: Buffer): boolean {
      if (approved?.sha256.equals(sha256) === true) return true
      return store.quarantine.isApprovedSince(OSV_INDEX, sha256, publishedBy)
    },
    /** Whether exactly what a verdict refuses is approved by this run; the approval of removals says nothing of contents. */
    covers: (verdict: GuardVerdict): boolean => approved?.sha256.equals(verdict.identity) === true,
    /**
     * Whether the run may publish its records: none is refused, or exactly these are approved. Throws when it is to apply an
     * approval of records, and nothing that it fetched is refused.
     */
    admits(verdict: GuardVerdict | null): boolean {
      if (verdict === null || approved?.sha256.equals(verdict.identity) === true) return true
      if (verdict.refusal !== null) return false
      expectNoRecords()
      return true
    },
    /** Adds to the reason why records are refused that the approval is not theirs. */
    explain(refusal: string): string {
      if (approved === null) return refusal
      const other = ofIndex
        ? `what run ${approved.runId} would remove is approved now, these records need an approval of their own`
        : `what run ${approved.runId} refused was something else`
      return `${refusal}; ${other}`
    },
    /** Records, in the transaction that publishes it, that the approved change was applied. */
    noteApplied(): void {
      if (approved !== null) store.quarantine.decideQuarantine(approved.runId, 'approved', now())
    },
    /** Remembers approved removals where the records of their index are refused. */
    async keepRemovals(): Promise<void> {
      if (ofIndex) await store.exclusive(() => store.quarantine.decideQuarantine(approved.runId, 'approved', now()))
    },
    /**
     * Whether this run can close the open quarantine of the index. One about contents that changed silently needs a
     * comparison of contents, which alone can say that upstream does not serve them any more.
     */
    closesQuarantine(): boolean {
      const open = store.quarantine.listOpenQuarantines().find(({ path }) => path === OSV_INDEX)
      if (open === undefined) return false
      const silent = Number(silentChangesOf(open) ?? 0)
      return silent === 0 || ownKind === 'reconcile' || facts['silentChanges'] !== undefined
    },
  }

  /** Where the refused run compared contents, so must this one: the index does not say which of them changed. */
  function kindOf(refused: Quarantine): RunKind {
    return silentChangesOf(refused) === undefined ? kind : 'reconcile'
  }

  function silentChangesOf({ runId }: Pick<Quarantine, 'runId'>) {
    return store.runs.readRun(runId)?.facts['silentChanges']
  }
}

/** Reports whether a quarantine is about what an index would remove; otherwise it is about contents of records. */
function isOfIndex({ sha256, body }: Quarantine): boolean {
  return sha256Of(contentOf(body, sizeOf(body))).equals(sha256)
}
