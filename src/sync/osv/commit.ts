import { hash } from 'node:crypto'
import { readdirSync } from 'node:fs'
import { derivedDir } from '../../store/database/open.ts'
import { contentOf, sizeOf } from '../../store/database/gzip.ts'
import { OSV_INDEX } from '../../upstream/osv.ts'
import type { SyncContext, SyncResult } from '../context.ts'
import { sweepArchives } from '../../archive/build.ts'
import { type OsvPlan, planOsv } from './diff.ts'
import { type ListedIndex, proveStored, keepDated, publishOsv } from './publish.ts'
import { recordChanged } from './record.ts'

/** What became of what was to be fetched. */
export interface FetchResult {
  /** Ids that could not be had, each with the reason. */
  lacking: Map<string, string>
  /** Ids that were had, but are to be asked for once more. */
  doubted: readonly string[]
}

/** One transaction: what was fetched, what is gone, and the state that describes it. All or nothing. */
export async function commit(
  context: SyncContext,
  listed: ListedIndex,
  plan: OsvPlan,
  fill: () => Promise<FetchResult>,
): Promise<SyncResult> {
  const { store, facts, config } = context
  const previous = store.readArchive()?.file
  const dir = derivedDir(config.data.dir)
  const before = readdirSync(dir)
  try {
    const result = await store.transaction(() => apply(context, listed, plan, fill))
    sweepArchives(dir, [store.readArchive()?.file ?? '', previous ?? ''])
    facts['records'] = result.records
    return outcomeOf(context, listed, plan, result.lacking)
  } catch (error) {
    sweepArchives(dir, before) // an archive that nobody will serve must not fill the disk
    throw error
  }
}

async function apply(
  context: SyncContext,
  listed: ListedIndex,
  plan: OsvPlan,
  fill: () => Promise<FetchResult>,
): Promise<{ commit: boolean; lacking: Map<string, string>; records: number }> {
  const { store, runId, now } = context
  const { lacking, doubted } = await fill()
  store.staging.eachStaged((record) =>
    store.updateRecord(record, recordChanged(now(), now(), [record.modified])),
  )
  store.staging.clear()
  for (const id of plan.removed) store.removeRecord(id, runId, now())
  store.replaceSuspectIds([...lacking.keys(), ...doubted])
  context.progress({ source: 'osv', phase: 'publish', unit: 'records', done: 0, total: null })
  const published = await publishOsv(context, listed, isWhole(listed, lacking))
  return { commit: true, lacking, ...published }
}

/** Whether all that the index lists is stored: nothing is missing, and no entry was skipped. */
export function isWhole({ index }: ListedIndex, lacking: ReadonlyMap<string, string>): boolean {
  return lacking.size === 0 && index.unusable === 0
}

/** How the run that committed this ends: `complete` only when nothing is lacking, and no entry was skipped. */
export function outcomeOf(
  context: SyncContext,
  listed: ListedIndex,
  plan: OsvPlan,
  lacking: Map<string, string>,
): SyncResult {
  const { facts } = context
  const { removed } = plan
  // What could not be fetched is not there, whatever the index says.
  const [added, changed] = [plan.added, plan.changed].map(
    (ids) => ids.filter((id) => !lacking.has(id)).length,
  )
  facts['added'] = added ?? 0
  facts['changed'] = changed ?? 0
  const moved = `${added ?? 0} added, ${changed ?? 0} changed, ${removed.length} removed`
  const silent = Number(facts['silentChanges'] ?? 0)
  const told = silent > 0 ? `${moved}, ${silent} silent` : moved
  if (isWhole(listed, lacking))
    return { outcome: 'complete', asOf: listed.asOf, message: told + comparedBy(context) }
  const missing: string[] = []
  if (lacking.size > 0) {
    facts['lacking'] = lacking.size
    facts['lackingIds'] = [...lacking].slice(0, 20).map(([id, why]) => `${id}: ${why}`)
    missing.push(`${lacking.size} could not be had`)
  }
  const { unusable, skipped } = listed.index
  if (unusable > 0) missing.push(`${unusable} index entries skipped (${skipped[0] ?? ''})`)
  return { outcome: 'partial', asOf: listed.asOf, message: [told, ...missing].join('; ') }
}

/** Says of a sync that went by the stamps of the index that it did; empty where the contents were compared. */
function comparedBy({ kind, full, facts, store }: SyncContext): string {
  if (full || kind !== 'sync' || facts['archiveBytes'] !== undefined) return ''
  const at = store.readLastReconcile('osv')
  const last =
    at === null
      ? 'contents not compared yet (reconcile)'
      : `contents last compared (reconcile) on ${new Date(at).toISOString()}`
  return `; compared by the stamps of the index, ${last}`
}

const NOTHING_OPEN: FetchResult = { lacking: new Map(), doubted: [] }

/** Same set as held: at most upstream's validators are new. */
export async function confirm(context: SyncContext, listed: ListedIndex): Promise<SyncResult> {
  const { store } = context
  const held = store.readDocument(OSV_INDEX)
  const whole = store.readSnapshot('osv')?.whole === true
  const isSound = isWhole(listed, NOTHING_OPEN.lacking)
  if (!isSound && !whole && isKnown(context, listed)) {
    await renewValidators(context, listed, listed.gzip)
    await unchanged(context, '')
    return outcomeOf(context, listed, NO_CHANGE, NOTHING_OPEN.lacking)
  }
  if (!isSound || !whole || held?.sha256.equals(listed.index.sha256) !== true) {
    // Equal as a set but not as text: other order or spacing. Serve upstream's bytes. Or what was lacking is not
    // listed any more: the snapshot is whole now and shall say so.
    return commit(context, listed, planOsv(store, listed.index), () =>
      Promise.resolve(NOTHING_OPEN),
    )
  }
  await renewValidators(context, listed, null)
  return unchanged(context, 'nothing changed', listed.asOf)
}

const NO_CHANGE: OsvPlan = { added: [], changed: [], removed: [], held: 0 }

/** Whether the partial snapshot held was made from this very index. */
function isKnown({ store }: SyncContext, { held, index }: ListedIndex): boolean {
  const body = held ? null : (store.readUpstreamState(OSV_INDEX)?.body ?? null)
  return (
    held ||
    (body !== null &&
      hash('sha256', contentOf(body, sizeOf(body)), 'hex') === index.sha256.toString('hex'))
  )
}

async function renewValidators(
  { store }: SyncContext,
  { etag, lastModified }: ListedIndex,
  body: Buffer | null,
): Promise<void> {
  const state = store.readUpstreamState(OSV_INDEX)
  if (state?.etag === etag && state.lastModified === lastModified) return
  await store.exclusive(() => store.replaceUpstreamState(OSV_INDEX, { etag, lastModified, body }))
}

/**
 * Nothing is written but dates that time has overtaken, and the end of a quarantine: upstream is back at what is held, so
 * what it refused is past.
 */
export async function unchanged(
  context: SyncContext,
  message: string,
  asOf?: number,
): Promise<SyncResult> {
  const { store, facts, dryRun, now } = context
  await proveStored(context)
  await keepDated(context)
  if (!dryRun && store.listOpenQuarantines().some(({ path }) => path === OSV_INDEX)) {
    await store.exclusive(() => store.supersedeQuarantines(OSV_INDEX, now()))
  }
  const confirmed = asOf ?? (typeof facts['asOf'] === 'number' ? facts['asOf'] : null)
  return { outcome: 'complete', asOf: confirmed, message: message + comparedBy(context) }
}
