import { readdirSync } from 'node:fs'
import { messageOf } from '../../base/errors.ts'
import { dropArchives, sweepArchives } from '../../archive/build.ts'
import { type Draft, createDraft } from '../../archive/draft.ts'
import { OSV_ARCHIVE } from '../../base/domain/feed-paths.ts'
import { derivedDir } from '../../store/database/open.ts'
import type { SyncContext } from '../context.ts'
import type { Approval } from './approval.ts'
import type { OsvPlan } from './diff.ts'
import type { ListedIndex } from './fetch-index.ts'
import type { FetchedRecords } from './fetch-records.ts'
import { type OsvRecordGuard, type Refusal, openRecordGuard } from './guard.ts'
import type { OsvIndex } from './index-parser.ts'
import type { IngestTarget } from './ingest.ts'
import type { PublishedRecords } from './outcome.ts'
import { publishOsv } from './publish.ts'
import { recordChanged } from './record.ts'
import type { RunScope } from './scope.ts'

/** The run found records that should not be believed, and that nobody approved. */
type RefusedRecords = Refusal & { readonly state: 'refused' }

/**
 * Commits the fetched records, the removals and the state in one transaction. All or nothing: commits nothing when the
 * records should not be believed and are not those approved. Releases a downloaded archive.
 */
export async function commitChanges(
  context: SyncContext,
  { scope, approval }: { scope: RunScope; approval: Approval },
  listed: ListedIndex,
  plan: OsvPlan,
  fetched: FetchedRecords,
): Promise<PublishedRecords | RefusedRecords> {
  const { store, facts, config } = context
  const dir = derivedDir(config.data.dir)
  const previous = store.osv.readArchive()?.file ?? ''
  const isFirst = fetched.place === 'archive' && plan.stored === 0
  const write = isFirst ? store.fill : store.transaction
  const guard = await openRecordGuard(context, plan, approval)
  // What the transaction will have superseded twice.
  const dropped = Promise.allSettled([dropArchives(dir, [previous])])
  const before = readdirSync(dir) // those too: after a failure only what is new is deleted
  try {
    const { end, records } = await write(async () => {
      const wasDirty = store.osv.hasDirtyParts()
      // The derived archive of an empty store is written along with its records.
      const draft = isFirst ? createDraft(store.osv, dir, (id) => listed.index.ids.get(id) !== undefined) : null
      draft?.begin('')
      try {
        const missing = await writeChanges(context, scope, listed.index, plan, fetched, draft, guard)
        if (!approval.allowsRemovals(listed.index.sha256)) guard.remove(plan.removed)
        const verdict = guard.verdict()
        if (verdict !== null && !approval.admits(verdict)) {
          const reason = approval.explain(verdict.refusal ?? '')
          return { commit: false, records: 0, end: { state: 'refused', sha256: verdict.identity, reason } as const }
        }
        const last = store.changes.lastLogged()
        const records = await publishOsv(context, approval, listed, missing, { draft, wasDirty })
        const doubts = guard.account(verdict, last)
        return { commit: true, records, end: { state: 'committed', missing, doubts } as const }
      } finally {
        draft?.close()
      }
    })
    if (end.state === 'refused') return end
    const [outcome] = await dropped
    // The next run tries again: what is published does not depend on it.
    if (outcome.status === 'rejected') facts['notDeleted'] = messageOf(outcome.reason)
    facts['records'] = records
    return end
  } catch (error) {
    sweepArchives(dir, before) // an unpublished archive must not fill the disk
    throw error
  } finally {
    if (fetched.place === 'archive') await fetched.dispose()
  }
}

/** Writes the fetched records and the removals in the open transaction. Returns the listed ids that are missing, with the reason. */
async function writeChanges(
  { store, runId, now }: SyncContext,
  scope: RunScope,
  index: OsvIndex,
  { removed, dropped }: OsvPlan,
  fetched: FetchedRecords,
  draft: Draft | null,
  guard: OsvRecordGuard,
): Promise<PublishedRecords['missing']> {
  const { staging } = store.osv
  const target: IngestTarget = draft === null ? { kind: 'store', guard } : { kind: 'empty store', draft }
  const { missing, suspectIds } = fetched.place === 'archive' ? await fetched.readInto(target) : fetched.result
  // While a record of the archive is missing, the next reconcile must read the archive again.
  if (fetched.compared !== null && missing.size === 0)
    store.feeds.replaceUpstreamState(OSV_ARCHIVE, { ...fetched.compared, body: null })
  if (staging.isEmpty()) draft?.end()
  else draft?.close() // it lacks the records that were fetched one by one
  staging.eachStaged((record) => {
    guard.see(record)
    store.osv.updateRecord(record, recordChanged(now(), now(), [record.modified]))
  })
  staging.clear()
  for (const id of removed) store.osv.removeRecord(id, runId, now())
  guard.leave(scope.write(index, dropped))
  store.osv.replaceSuspectIds([...missing.keys(), ...suspectIds])
  return missing
}
