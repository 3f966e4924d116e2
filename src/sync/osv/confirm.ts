import { createHash } from 'node:crypto'
import { rebuildLostArchive } from '../../archive/build.ts'
import { sha256Of } from '../../base/digest.ts'
import { MirrorError } from '../../base/errors.ts'
import { counted } from '../../base/text.ts'
import { OSV_ARCHIVE, OSV_INDEX } from '../../base/domain/feed-paths.ts'
import { contentOf, sizeOf } from '../../store/database/gzip.ts'
import type { Reads } from '../../store/reads.ts'
import type { SyncContext } from '../context.ts'
import type { OsvPlan } from './diff.ts'
import type { FetchedRecords, StagedRecords } from './fetch-changes.ts'
import type { ListedIndex } from './fetch-index.ts'
import { closesQuarantine } from './approval.ts'
import { type PublishedRecords, isWhole } from './outcome.ts'
import { isScopeStored } from './scope/scope.ts'

/**
 * Returns whether the published snapshot is what this run would publish: every fetched record is stored, none is
 * removed, the same ones are missing, and the index has the same bytes, not just the same records in another order.
 */
export function isPublished(
  context: SyncContext,
  { index, stored }: ListedIndex,
  plan: OsvPlan,
  fetched: FetchedRecords,
): fetched is StagedRecords {
  const { store } = context
  if (fetched.place !== 'store' || plan.removed.length + plan.dropped.length > 0) return false
  if (!isScopeStored(context, index)) return false
  const whole = isWhole(index, fetched.result.missing)
  if (store.snapshots.readSnapshot('osv')?.whole !== whole) return false
  if (whole && index.scope === null) return store.feeds.readDocument(OSV_INDEX)?.sha256.equals(index.sha256) === true
  if (stored) return true
  const body = store.feeds.readUpstreamState(OSV_INDEX)?.body ?? null
  if (body === null || !plan.isEmpty) return false
  return sha256Of(contentOf(body, sizeOf(body))).equals(index.sha256)
}

/**
 * Ends a run whose index, with the same records missing, is published already: stores at most newer validators and
 * the suspect ids.
 */
export async function confirmIndex(
  context: SyncContext,
  listed: ListedIndex,
  { compared, result: { missing, suspectIds } }: StagedRecords,
): Promise<PublishedRecords> {
  const { store } = context
  const { etag, lastModified, gzip, index } = listed
  const state = store.feeds.readUpstreamState(OSV_INDEX)
  if (state?.etag !== etag || state.lastModified !== lastModified) {
    const body = isWhole(index, missing) && index.scope === null ? null : gzip
    await store.exclusive(() => store.feeds.replaceUpstreamState(OSV_INDEX, { etag, lastModified, body }))
  }
  if (compared !== null) {
    await store.exclusive(() => store.feeds.replaceUpstreamState(OSV_ARCHIVE, { ...compared, body: null }))
  }
  await confirmStored(context)
  if (store.osv.listSuspectIds().length > 0) {
    await store.exclusive(() => store.osv.replaceSuspectIds([...missing.keys(), ...suspectIds]))
  }
  return { committed: false, missing, doubts: null }
}

/**
 * Ends a run without changes: proves what is stored, updates only dates that have become outdated, and closes a
 * quarantine, because upstream serves the stored state again.
 */
export async function confirmStored(context: SyncContext): Promise<void> {
  const { store, dryRun, now } = context
  await proveStored(context)
  if (dryRun) return
  await keepDated(context)
  if (closesQuarantine(context)) {
    await store.exclusive(() => store.quarantine.supersedeQuarantines(OSV_INDEX, now()))
  }
}

type StoredRecords = Pick<Reads, 'snapshots' | 'feeds' | 'osv'>

/**
 * Proves that the store is still what was published, by count and digest, at the end of a run without changes, and
 * that the archive exists (a missing one is rebuilt; a reconcile also reads it through and repairs it). Throws
 * `proof` when the database was altered since.
 */
async function proveStored({ store, config, dryRun, kind }: SyncContext): Promise<void> {
  const fault = faultOfStored(store)
  if (fault !== null) {
    throw new MirrorError('proof', `upstream has nothing new, but ${fault}: run "patchmirror doctor --data --repair"`)
  }
  if (!dryRun) await rebuildLostArchive(store.osv, config.data.dir, kind === 'reconcile')
}

/**
 * Returns why the stored index, records and archive are not the published snapshot; null when they are, or none was
 * published.
 */
export function faultOfStored(stored: StoredRecords): string | null {
  const snapshot = stored.snapshots.readSnapshot('osv')
  const index = stored.feeds.listDocuments('osv').find(({ path }) => path === OSV_INDEX)
  const archive = stored.osv.readArchive()
  const records = stored.osv.countRecords()
  if (snapshot === null) return records > 0 ? 'the stored records were never published' : null
  if (index?.present !== true) return 'the index is missing'
  if (archive === null) return 'the archive is missing'
  if (records !== snapshot.records)
    return `${counted(records, 'record is', 'records are')} stored, but ${counted(snapshot.records, 'was', 'were')} published`
  if (stored.osv.countBodies() !== records) return 'contents of records are missing'
  const id = createHash('sha256').update(index.sha256).update(archive.sha256, 'hex').digest('hex')
  return id === snapshot.id ? null : 'index and archive differ from the published ones'
}

/**
 * Updates the dates of an unchanged snapshot when a stamp that was in the future at its publication has become the
 * newest past one: no Last-Modified may be older than it. Uses its own transaction; usually there is nothing to do.
 */
async function keepDated({ store, now, runId }: SyncContext): Promise<void> {
  const notBefore = store.osv.readNewestModified(now())
  const index = store.feeds.listDocuments('osv').find(({ path }) => path === OSV_INDEX)
  const archive = store.osv.readArchive()
  const snapshot = store.snapshots.readSnapshot('osv')
  if (notBefore === null || index === undefined || archive === null || snapshot === null) return
  if (Math.min(index.changed, archive.changed) >= notBefore) return
  await store.exclusive(() => {
    const stored = store.feeds.readDocument(OSV_INDEX)
    if (stored !== null && stored.changed < notBefore) store.feeds.replaceDocument({ ...stored, changed: notBefore })
    if (archive.changed < notBefore) store.osv.replaceArchive({ ...archive, changed: notBefore })
    store.snapshots.replaceSnapshot({ ...snapshot, runId }) // readers go by it: the dates that they have are replaced
  })
}
