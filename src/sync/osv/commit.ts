import { readdirSync } from 'node:fs'
import { messageOf } from '../../base/errors.ts'
import { dropArchives, sweepArchives } from '../../archive/build.ts'
import { type Draft, createDraft } from '../../archive/draft.ts'
import { OSV_ARCHIVE } from '../../base/domain/feed-paths.ts'
import { derivedDir } from '../../store/database/open.ts'
import type { GuardVerdict } from '../../guard/verdict.ts'
import type { Quarantine } from '../../store/runs/quarantine.ts'
import type { SyncContext } from '../context.ts'
import type { OsvPlan } from './diff.ts'
import type { FetchedRecords } from './fetch-changes.ts'
import type { ListedIndex } from './fetch-index.ts'
import type { FetchResult } from './fetch-records.ts'
import { isAdmitted, isRemovalApproved } from './approval.ts'
import { noteDoubts, publishedDoubts, recordDoubts } from '../doubts.ts'
import { type OsvRecordGuard, judgeLeft, openRecordGuard } from './guard.ts'
import { type IngestTarget, ingestArchive } from './ingest.ts'
import type { PublishedRecords } from './outcome.ts'
import { publishOsv } from './publish.ts'
import { recordChanged } from './record.ts'
import { type LeftRecord, withoutLeftOut, writeScope } from './scope/scope.ts'

/**
 * Commits the fetched records, the removals and the state in one transaction. All or nothing. Releases a downloaded
 * archive. Returns a verdict, and commits nothing, when the records should not be believed and are not those approved.
 */
export async function commitChanges(
  context: SyncContext,
  listed: ListedIndex,
  plan: OsvPlan,
  fetched: FetchedRecords,
  approved: Quarantine | null,
): Promise<PublishedRecords | GuardVerdict> {
  const { store, facts, config } = context
  const dir = derivedDir(config.data.dir)
  const previous = store.osv.readArchive()?.file ?? ''
  const isFirst = fetched.place === 'archive' && plan.stored === 0
  const write = isFirst ? store.fill : store.transaction
  const guard = await openRecordGuard(context, plan.stored)
  // What the transaction will have superseded twice.
  const dropped = Promise.allSettled([dropArchives(dir, [previous])])
  const before = readdirSync(dir) // those too: after a failure only what is new is deleted
  try {
    const published = await write(async () => {
      const wasDirty = store.osv.hasDirtyParts()
      const draft = isFirst ? draftOf(context, listed) : null
      try {
        const { missing, left } = await writeChanges(context, listed, plan, fetched, draft, guard)
        if (mayHide(context, listed, approved)) guard?.remove(plan.removed)
        const verdict = judgeLeft(context, plan, left, guard?.verdict() ?? null)
        if (verdict !== null) recordDoubts(context, verdict)
        if (verdict !== null && !isAdmitted(verdict, approved)) return { commit: false, verdict }
        const kept = withoutLeftOut(listed) // what the records themselves put out of scope
        const last = store.changes.lastLogged()
        const records = await publishOsv(context, kept, missing, { draft, wasDirty })
        if (verdict !== null) guard?.account(verdict)
        // What an operator approved is not doubted any more.
        if (verdict !== null && approved === null) noteDoubts(context, last, verdict)
        return {
          commit: true,
          missing,
          records,
          doubts: publishedDoubts(verdict, approved !== null),
        }
      } finally {
        draft?.close()
      }
    })
    if ('verdict' in published) return published.verdict
    const [outcome] = await dropped
    // The next run tries again: what is published does not depend on it.
    if (outcome.status === 'rejected') facts['notDeleted'] = messageOf(outcome.reason)
    facts['records'] = published.records
    return { committed: true, missing: published.missing, doubts: published.doubts }
  } catch (error) {
    sweepArchives(dir, before) // an unpublished archive must not fill the disk
    throw error
  } finally {
    if (fetched.place === 'archive') await fetched.archive.dispose()
  }
}

/** Whether removals are counted: an operator has not approved those of this index. */
function mayHide(context: SyncContext, { index: { sha256 } }: ListedIndex, approved: Quarantine | null): boolean {
  return approved?.sha256.equals(sha256) !== true && !isRemovalApproved(context, sha256)
}

/** Creates the derived archive that is written along with the records of an empty store. */
function draftOf({ store, config }: SyncContext, { index }: ListedIndex): Draft {
  const dir = derivedDir(config.data.dir)
  const draft = createDraft(store.osv, dir, (id) => index.ids.get(id) !== undefined)
  draft.begin('')
  return draft
}

/**
 * Writes the fetched records and the removals in the open transaction. Returns the listed ids that are missing, with
 * the reason, and the records whose new content is out of scope.
 */
async function writeChanges(
  context: SyncContext,
  { index }: ListedIndex,
  { removed, dropped }: OsvPlan,
  fetched: FetchedRecords,
  draft: Draft | null,
  guard: OsvRecordGuard | null,
): Promise<{ missing: FetchResult['missing']; left: readonly LeftRecord[] }> {
  const { store, runId, now } = context
  const { staging } = store.osv
  const target: IngestTarget = draft === null ? { kind: 'store', guard } : { kind: 'empty store', draft }
  const { result } =
    fetched.place === 'archive' ? await ingestArchive(context, index, fetched.archive, target) : fetched
  const { missing, suspectIds } = result
  // While a record of the archive is missing, the next reconcile must read the archive again.
  if (fetched.compared !== null && missing.size === 0)
    store.feeds.replaceUpstreamState(OSV_ARCHIVE, { ...fetched.compared, body: null })
  if (staging.isEmpty()) draft?.end()
  else draft?.close() // it lacks the records that were fetched one by one
  staging.eachStaged((record) => {
    guard?.see(record)
    store.osv.updateRecord(record, recordChanged(now(), now(), [record.modified]))
  })
  staging.clear()
  for (const id of removed) store.osv.removeRecord(id, runId, now())
  const left = writeScope(context, index, dropped)
  for (const one of left) guard?.leave(one)
  store.osv.replaceSuspectIds([...missing.keys(), ...suspectIds])
  return { missing, left }
}
