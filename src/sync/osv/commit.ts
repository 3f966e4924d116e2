import { readdirSync } from 'node:fs'
import { toIso } from '../../core/time.ts'
import { sha256Hex } from '../../core/digest.ts'
import { derivedDir } from '../../store/database/open.ts'
import { contentOf, sizeOf } from '../../store/database/gzip.ts'
import { OSV_INDEX } from '../../domain/feed-paths.ts'
import type { SyncContext, SyncResult } from '../context.ts'
import { sweepArchives } from '../../archive/build.ts'
import { type OsvPlan, planOsv } from './diff.ts'
import { type ListedIndex, proveStored, keepDated, publishOsv } from './publish.ts'
import { recordChanged } from './record.ts'

/** Result of fetching records. */
export interface FetchResult {
  /** Ids that could not be fetched → reason. */
  missing: Map<string, string>
  /** Ids that were fetched, but must be requested again. */
  suspectIds: readonly string[]
}

/** Commits the fetched records, the removals and the state in one transaction. All or nothing. */
export async function commit(
  context: SyncContext,
  listed: ListedIndex,
  plan: OsvPlan,
  fill: () => Promise<FetchResult>,
): Promise<SyncResult> {
  const { store, facts, config } = context
  const previous = store.osv.readArchive()?.file
  const dir = derivedDir(config.data.dir)
  const before = readdirSync(dir)
  try {
    const result = await store.transaction(() => apply(context, listed, plan, fill))
    sweepArchives(dir, [store.osv.readArchive()?.file ?? '', previous ?? ''])
    facts['records'] = result.records
    return runOutcome(context, listed, plan, result.missing)
  } catch (error) {
    sweepArchives(dir, before) // an unpublished archive must not fill the disk
    throw error
  }
}

async function apply(
  context: SyncContext,
  listed: ListedIndex,
  plan: OsvPlan,
  fill: () => Promise<FetchResult>,
): Promise<{ commit: boolean; missing: Map<string, string>; records: number }> {
  const { store, runId, now } = context
  const { missing, suspectIds } = await fill()
  store.osv.staging.eachStaged((record) =>
    store.osv.updateRecord(record, recordChanged(now(), now(), [record.modified])),
  )
  store.osv.staging.clear()
  for (const id of plan.removed) store.osv.removeRecord(id, runId, now())
  store.osv.replaceSuspectIds([...missing.keys(), ...suspectIds])
  context.progress({ source: 'osv', phase: 'publish', unit: 'records', done: 0, total: null })
  const published = await publishOsv(context, listed, isWhole(listed, missing))
  return { commit: true, missing, ...published }
}

/** Returns whether everything that the index lists is stored: nothing is missing, and no entry was skipped. */
export function isWhole({ index }: ListedIndex, missing: ReadonlyMap<string, string>): boolean {
  return missing.size === 0 && index.unusable === 0
}

/** Returns the result of a run that committed: `complete` only when nothing is missing and no entry was skipped. */
export function runOutcome(
  context: SyncContext,
  listed: ListedIndex,
  plan: OsvPlan,
  missing: Map<string, string>,
): SyncResult {
  const { facts } = context
  const { removed } = plan
  // Records that could not be fetched do not count, whatever the index lists.
  const [added, changed] = [plan.added, plan.changed].map(
    (ids) => ids.filter((id) => !missing.has(id)).length,
  )
  facts['added'] = added ?? 0
  facts['changed'] = changed ?? 0
  const changes = `${added ?? 0} added, ${changed ?? 0} changed, ${removed.length} removed`
  const silent = Number(facts['silentChanges'] ?? 0)
  const summary = silent > 0 ? `${changes}, ${silent} silent` : changes
  if (isWhole(listed, missing))
    return { outcome: 'complete', asOf: listed.asOf, message: summary + comparedBy(context) }
  const reasons: string[] = []
  if (missing.size > 0) {
    facts['lacking'] = missing.size
    facts['lackingIds'] = [...missing].slice(0, 20).map(([id, why]) => `${id}: ${why}`)
    reasons.push(`${missing.size} could not be fetched`)
  }
  const { unusable, skipped } = listed.index
  if (unusable > 0) reasons.push(`${unusable} index entries skipped (${skipped[0] ?? ''})`)
  return { outcome: 'partial', asOf: listed.asOf, message: [summary, ...reasons].join('; ') }
}

/** Returns a note that a sync compared only the index's stamps; empty where contents were compared. */
function comparedBy({ kind, full, facts, store }: SyncContext): string {
  if (full || kind !== 'sync' || facts['archiveBytes'] !== undefined) return ''
  const at = store.runs.readLastReconcile('osv')
  const last =
    at === null
      ? 'contents not compared yet (reconcile)'
      : `contents last compared (reconcile) on ${toIso(at)}`
  return `; compared by the stamps of the index, ${last}`
}

const NOTHING_OPEN: FetchResult = { missing: new Map(), suspectIds: [] }

/** Handles an index that lists the same records as stored; at most upstream's validators are new. */
export async function confirm(context: SyncContext, listed: ListedIndex): Promise<SyncResult> {
  const { store } = context
  const stored = store.feeds.readDocument(OSV_INDEX)
  const whole = store.snapshots.readSnapshot('osv')?.whole === true
  const isSound = isWhole(listed, NOTHING_OPEN.missing)
  if (!isSound && !whole && isKnown(context, listed)) {
    await renewValidators(context, listed, listed.gzip)
    await unchanged(context, '')
    return runOutcome(context, listed, NO_CHANGE, NOTHING_OPEN.missing)
  }
  if (!isSound || !whole || stored?.sha256.equals(listed.index.sha256) !== true) {
    // Equal as a set but not as text (another order or spacing): serve upstream's bytes. Or a missing record is no
    // longer listed: the snapshot is now complete and must be published as such.
    return commit(context, listed, planOsv(store.osv, listed.index), () =>
      Promise.resolve(NOTHING_OPEN),
    )
  }
  await renewValidators(context, listed, null)
  return unchanged(context, 'nothing changed', listed.asOf)
}

const NO_CHANGE: OsvPlan = { added: [], changed: [], removed: [], stored: 0 }

/** Returns whether the stored partial snapshot was built from this same index. */
function isKnown({ store }: SyncContext, { stored, index }: ListedIndex): boolean {
  const body = stored ? null : (store.feeds.readUpstreamState(OSV_INDEX)?.body ?? null)
  return (
    stored ||
    (body !== null && sha256Hex(contentOf(body, sizeOf(body))) === index.sha256.toString('hex'))
  )
}

async function renewValidators(
  { store }: SyncContext,
  { etag, lastModified }: ListedIndex,
  body: Buffer | null,
): Promise<void> {
  const state = store.feeds.readUpstreamState(OSV_INDEX)
  if (state?.etag === etag && state.lastModified === lastModified) return
  await store.exclusive(() =>
    store.feeds.replaceUpstreamState(OSV_INDEX, { etag, lastModified, body }),
  )
}

/**
 * Ends a run without changes: updates only dates that have become outdated, and closes a quarantine, because upstream
 * serves the stored state again.
 */
export async function unchanged(
  context: SyncContext,
  message: string,
  asOf?: number,
): Promise<SyncResult> {
  const { store, facts, dryRun, now } = context
  await proveStored(context)
  await keepDated(context)
  if (!dryRun && store.quarantine.listOpenQuarantines().some(({ path }) => path === OSV_INDEX)) {
    await store.exclusive(() => store.quarantine.supersedeQuarantines(OSV_INDEX, now()))
  }
  const confirmed = asOf ?? (typeof facts['asOf'] === 'number' ? facts['asOf'] : null)
  return { outcome: 'complete', asOf: confirmed, message: message + comparedBy(context) }
}
