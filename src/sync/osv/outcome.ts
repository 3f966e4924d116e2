import { createHash } from 'node:crypto'
import { rebuildLostArchive } from '../../archive/build.ts'
import { sha256Of } from '../../base/digest.ts'
import { MirrorError } from '../../base/errors.ts'
import { counted } from '../../base/text.ts'
import { toIso } from '../../base/time.ts'
import { OSV_ARCHIVE, OSV_INDEX } from '../../base/domain/feed-paths.ts'
import { contentOf, sizeOf } from '../../store/database/gzip.ts'
import type { Reads } from '../../store/reads.ts'
import type { Writes } from '../../store/writes.ts'
import type { SyncContext, SyncResult } from '../context.ts'
import { quarantineChange } from '../refusals.ts'
import type { Approval } from './approval.ts'
import type { OsvPlan } from './diff.ts'
import type { ListedIndex } from './fetch-index.ts'
import type { FetchedRecords, StagedRecords } from './fetch-records.ts'
import type { Refusal } from './guard.ts'
import type { OsvIndex } from './index-parser.ts'
import type { RunScope } from './scope.ts'

/** The snapshot at the end of a run. */
export interface PublishedRecords {
  /** `committed`: by this run; `confirmed`: it was published before. */
  state: 'committed' | 'confirmed'
  /** Ids that are listed but could not be fetched → reason. */
  missing: ReadonlyMap<string, string>
  /** Says what of the committed changes is doubtful, or was approved; null: nothing. */
  doubts: string | null
}

/** How a run that listed something ended; `planned`: a dry run, which stores nothing. */
export type OsvEnd = PublishedRecords | Refusal | { readonly state: 'planned' }

/** Returns whether everything is stored: nothing that is listed is missing, no entry was skipped, and upstream lacks nothing. */
export function isWhole({ unusable, lacks }: OsvIndex, missing: ReadonlyMap<string, string>): boolean {
  return missing.size === 0 && unusable === 0 && lacks === null
}

/**
 * Returns whether the published snapshot is what this run would publish: every fetched record is stored, none is
 * removed, the same ones are missing, and the index has the same bytes, not just the same records in another order.
 */
export function isPublished(
  { store }: SyncContext,
  scope: RunScope,
  { index, stored }: ListedIndex,
  plan: OsvPlan,
  fetched: FetchedRecords,
): fetched is StagedRecords {
  if (fetched.place !== 'store' || plan.removed.length + plan.dropped.length > 0) return false
  if (!scope.isStored(index)) return false
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
  approval: Approval,
  listed: ListedIndex,
  { compared, result: { missing, suspectIds } }: StagedRecords,
): Promise<PublishedRecords> {
  const { store } = context
  const { etag, lastModified, gzip, index } = listed
  approval.expectNoRecords()
  const state = store.feeds.readUpstreamState(OSV_INDEX)
  if (state?.etag !== etag || state.lastModified !== lastModified) {
    const body = isWhole(index, missing) && index.scope === null ? null : gzip
    await store.exclusive(() => store.feeds.replaceUpstreamState(OSV_INDEX, { etag, lastModified, body }))
  }
  if (compared !== null) {
    await store.exclusive(() => store.feeds.replaceUpstreamState(OSV_ARCHIVE, { ...compared, body: null }))
  }
  await confirmStored(context, approval)
  if (store.osv.listSuspectIds().length > 0) {
    await store.exclusive(() => store.osv.replaceSuspectIds([...missing.keys(), ...suspectIds]))
  }
  return { state: 'confirmed', missing, doubts: null }
}

/** Ends a run for which upstream has nothing new, and which lists nothing. */
export async function confirmNothingNew(context: SyncContext, approval: Approval, asOf: number): Promise<SyncResult> {
  await confirmStored(context, approval)
  return { outcome: 'complete', asOf, message: `upstream has nothing new${comparedBy(context, null)}` }
}

/**
 * Ends a run without changes: proves by count and digest that the store is still what was published, and that the archive
 * exists (a missing one is rebuilt; a reconcile also reads it through and repairs it), updates only dates that have become
 * outdated, and closes a quarantine, because upstream serves the stored state again. Throws `proof` when the database was
 * altered since.
 */
async function confirmStored(
  { store, config, dryRun, kind, now, runId }: SyncContext,
  approval: Approval,
): Promise<void> {
  const fault = faultOfStored(store)
  if (fault !== null) {
    throw new MirrorError('proof', `upstream has nothing new, but ${fault}: run "patchmirror doctor --data --repair"`)
  }
  if (dryRun) return
  await rebuildLostArchive(store.osv, config.data.dir, kind === 'reconcile')
  await keepDated(store, now(), runId)
  if (approval.closesQuarantine()) {
    await store.exclusive(() => store.quarantine.supersedeQuarantines(OSV_INDEX, now()))
  }
}

type StoredRecords = Pick<Reads, 'snapshots' | 'feeds' | 'osv'>

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
async function keepDated(store: Writes, now: number, runId: number): Promise<void> {
  const notBefore = store.osv.readNewestModified(now)
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

/**
 * Returns the result of a run that listed something. What it refused is put into quarantine, where an operator can approve
 * it.
 */
export async function resultOf(
  context: SyncContext,
  approval: Approval,
  listed: ListedIndex,
  plan: OsvPlan,
  end: OsvEnd,
): Promise<SyncResult> {
  if (end.state === 'planned') return dryRunOutcome(plan)
  if (end.state !== 'refused') return runOutcome(context, listed, plan, end)
  const { sha256, reason } = end
  const { gzip: body, etag, lastModified, asOf } = listed
  await approval.keepRemovals()
  return quarantineChange(context, {
    source: 'osv',
    path: OSV_INDEX,
    sha256,
    body,
    etag,
    lastModified,
    asOf,
    reason,
  })
}

/** Returns the result of a dry run. */
function dryRunOutcome({ added, changed, removed, dropped }: OsvPlan): SyncResult {
  const scope = dropped.length > 0 ? `, ${dropped.length} out of scope to remove` : ''
  const message = `dry run: ${added.length} to add, ${changed.length} to change, ${removed.length} to remove${scope}; nothing was stored`
  return { outcome: 'complete', asOf: null, message }
}

/**
 * Returns the result of a run that published or confirmed a snapshot, and records it in the facts: `complete` only
 * when nothing is missing and no entry was skipped.
 */
function runOutcome(
  context: SyncContext,
  { index, asOf }: ListedIndex,
  plan: OsvPlan,
  { state, missing, doubts }: PublishedRecords,
): SyncResult {
  const { facts } = context
  // Records that could not be fetched do not count, whatever the index lists.
  const isFetched = (id: string): boolean => !missing.has(id) && index.scope?.outside.get(id) === undefined
  const fetched = (ids: Iterable<string>): number => {
    let count = 0
    for (const id of ids) if (isFetched(id)) count++
    return count
  }
  const added = fetched(plan.added)
  const differing = Number(facts['silentChanges'] ?? 0)
  // Without stamps in the index, contents alone show the changes: none of them is silent.
  const isStamped = index.unstamped.size === 0
  const changed = fetched(plan.changed) + (isStamped ? 0 : differing)
  const silent = isStamped ? differing : 0
  Object.assign(facts, { added, changed })
  const changes = `${added} added, ${changed} changed, ${plan.removed.length} removed`
  const doubted = doubts === null ? '' : `; ${doubts}`
  const summary =
    (silent > 0 ? `${changes}, ${silent} changed under the same date` : changes) + scopedBy(context, index) + doubted
  if (isWhole(index, missing)) {
    const done = state === 'committed' || !plan.isEmpty ? summary : `nothing changed${scopedBy(context, index)}`
    return { outcome: 'complete', asOf, message: done + comparedBy(context, index) }
  }
  const reasons: string[] = []
  if (missing.size > 0) {
    facts['lacking'] = missing.size
    facts['lackingIds'] = [...missing].slice(0, 20).map(([id, why]) => `${id}: ${why}`)
    reasons.push(`${missing.size} could not be fetched`)
  }
  const { unusable, skipped, lacks } = index
  if (unusable > 0) reasons.push(`${counted(unusable, 'index entry', 'index entries')} skipped (${skipped[0] ?? ''})`)
  if (lacks !== null) reasons.push(lacks.why)
  return { outcome: 'partial', asOf, message: [summary, ...reasons].join('; ') }
}

/** Returns a note on what is out of scope, and records its number; empty without a scope. */
function scopedBy({ facts }: SyncContext, index: OsvIndex): string {
  if (index.scope === null) return ''
  const count = index.scope.countLeftOut()
  facts['outOfScope'] = count
  const dropped = facts['removedByScope']
  const also = typeof dropped === 'number' ? `, ${dropped} of them removed by the scope` : ''
  return `; ${counted(count, 'listed record is', 'listed records are')} out of scope (osv.scope)${also}`
}

/** Returns a note on what a sync compared without the archive: the index's stamps, or each record where it has none. */
function comparedBy({ kind, full, facts, store }: SyncContext, index: OsvIndex | null): string {
  const isCompared = facts['archiveBytes'] !== undefined || facts['silentChanges'] !== undefined
  if (full || kind !== 'sync' || isCompared) return ''
  if (index !== null && index.unstamped.size > 0)
    return '; the index has entries without stamps: each record was fetched and compared'
  const at = store.runs.readLastReconcile('osv')
  const last =
    at === null
      ? 'contents not compared yet ("patchmirror sync osv --reconcile")'
      : `contents last compared (reconcile) on ${toIso(at)}`
  return `; compared by the stamps of the index, ${last}`
}
