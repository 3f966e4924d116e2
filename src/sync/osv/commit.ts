import { createHash } from 'node:crypto'
import { readdirSync } from 'node:fs'
import { join } from 'node:path'
import { buildArchive, dropArchives, sweepArchives } from '../../archive/build.ts'
import { type BuiltArchive, type Draft, createDraft } from '../../archive/draft.ts'
import { patchArchive } from '../../archive/patch.ts'
import { countMembers } from '../../archive/zip/reader.ts'
import { MirrorError, messageOf } from '../../base/errors.ts'
import { OSV_ARCHIVE, OSV_INDEX } from '../../base/domain/feed-paths.ts'
import { counted } from '../../base/text.ts'
import { DAY_MS, readHttpDate } from '../../base/time.ts'
import { sizeOf } from '../../store/database/gzip.ts'
import { derivedDir } from '../../store/database/open.ts'
import { nextChanged } from '../../store/feeds/documents.ts'
import { timeOfAges } from '../../store/runs/age-limit.ts'
import type { Writes } from '../../store/writes.ts'
import type { SyncContext } from '../context.ts'
import type { Approval } from './approval.ts'
import type { OsvPlan } from './diff.ts'
import type { ListedIndex } from './fetch-index.ts'
import type { FetchedRecords } from './fetch-records.ts'
import { type OsvRecordGuard, type Refusal, openRecordGuard } from './guard.ts'
import type { Ids } from './id-table.ts'
import { type OsvIndex, type PackedIndex, narrowIndex, packIndex } from './index-parser.ts'
import type { IngestTarget } from './ingest.ts'
import { type PublishedRecords, isWhole } from './outcome.ts'
import { recordChanged } from './record.ts'
import type { RunScope } from './scope.ts'

/** Minimum records for patching the published archive; a smaller archive is rebuilt from the store in milliseconds. */
const PATCH_FROM = 2_000

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
): Promise<PublishedRecords | Refusal> {
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
    const { end } = await write(async () => {
      // The derived archive of an empty store is written along with its records.
      const draft = isFirst ? createDraft(store.osv, dir, (id) => listed.index.ids.get(id) !== undefined) : null
      draft?.begin('')
      try {
        const written = await writeAndPublish(context, { scope, approval, guard, draft }, listed, plan, fetched)
        return { commit: written.state === 'committed', end: written }
      } finally {
        draft?.close()
      }
    })
    if (end.state === 'refused') return end
    const [outcome] = await dropped
    // The next run tries again: what is published does not depend on it.
    if (outcome.status === 'rejected') facts['notDeleted'] = messageOf(outcome.reason)
    facts['records'] = store.snapshots.readSnapshot('osv')?.records ?? 0
    return end
  } catch (error) {
    sweepArchives(dir, before) // an unpublished archive must not fill the disk
    throw error
  } finally {
    if (fetched.place === 'archive') await fetched.dispose()
  }
}

/** What decides on the records of a run, and the archive that is written along with them; null: it is made of the stored ones. */
interface Deciding {
  readonly scope: RunScope
  readonly approval: Approval
  readonly guard: OsvRecordGuard
  readonly draft: Draft | null
}

/** Writes the changes in the open transaction, and publishes them, unless the guard refuses them. */
async function writeAndPublish(
  context: SyncContext,
  deciding: Deciding,
  listed: ListedIndex,
  plan: OsvPlan,
  fetched: FetchedRecords,
): Promise<PublishedRecords | Refusal> {
  const { store } = context
  const { approval, guard, draft } = deciding
  const missing = await writeChanges(context, deciding, listed.index, plan, fetched)
  guard.remove(plan.removed, approval.allowsRemovals(listed.index.sha256))
  const verdict = guard.verdict()
  if (verdict !== null && !approval.admits(verdict))
    return { state: 'refused', sha256: verdict.identity, reason: approval.explain(verdict.refusal ?? '') }
  const last = store.changes.lastLogged()
  await publishOsv(context, approval, listed, missing, draft)
  return { state: 'committed', missing, doubts: guard.account(verdict, last) }
}

/** Writes the fetched records and the removals. Returns the listed ids that are missing, with the reason. */
async function writeChanges(
  { store, runId, now }: SyncContext,
  { scope, guard, draft }: Deciding,
  index: OsvIndex,
  { removed, dropped }: OsvPlan,
  fetched: FetchedRecords,
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

/**
 * Publishes the open transaction as a snapshot: the index to serve, the archive rebuilt from the stored streams (an
 * ordinary sync patches the published one), and the proof that index ids = stored ids = archive members. Throws `proof` when they differ.
 */
async function publishOsv(
  context: SyncContext,
  approval: Approval,
  listed: ListedIndex,
  missing: ReadonlyMap<string, string>,
  draft: Draft | null,
): Promise<void> {
  const { store, config, kind, full } = context
  context.progress({ source: 'osv', phase: 'publish', unit: 'records', done: 0, total: null })
  const { index } = listed
  const ids = index.scope?.kept() ?? index.ids
  const whole = isWhole(index, missing)
  const dir = derivedDir(config.data.dir)
  store.osv.clearMissing()
  const served = whole && index.scope === null ? listedIndex(listed) : await narrowedIndex(store.osv, listed, ids)
  const isListed = (id: string): boolean => ids.get(id) !== undefined
  const isListedName = (bytes: Buffer, from: number, to: number): boolean =>
    index.ids.find(bytes, from, to) !== undefined
  const published = store.snapshots.readSnapshot('osv')?.records ?? 0
  const isPatchable = kind === 'sync' && !full && published >= PATCH_FROM
  const upstream = readHttpDate(listed.lastModified)
  const stored = store.osv.countRecords()
  const listedIds = whole ? ids.size : stored
  const publish = (built: BuiltArchive): void => {
    if (built.members !== stored || stored !== listedIds) throw unproven(listedIds, stored, built.members)
    replaceSnapshot(context, approval, listed, { whole, served, built, upstream })
  }
  const patched = isPatchable
    ? await patchArchive(store.osv, dir, { get: isListed, find: isListedName }, publish)
    : null
  const { file, members } =
    patched ??
    (draft?.isOpen() === true ? await draft.finish(publish) : null) ??
    (await buildArchive(store.osv, dir, isListed, publish))
  const read = await countMembers(join(dir, file)) // of the directory, read back from the disk
  if (read !== members) throw unproven(listedIds, stored, read)
}

/** What a run publishes: the index to serve and the archive. */
interface Publication {
  whole: boolean
  served: PackedIndex
  built: BuiltArchive
  /** Upstream's date of the index (Last-Modified), unix milliseconds; null: unknown. */
  upstream: number | null
}

/** Writes the snapshot with its index, archive and upstream state, and forgets what it supersedes. */
function replaceSnapshot(
  { store, config, runId, kind, now }: SyncContext,
  approval: Approval,
  { index: { scope }, etag, lastModified, gzip, asOf }: ListedIndex,
  { whole, served, built, upstream }: Publication,
): void {
  const notBefore = store.osv.readNewestModified(now())
  const times = { now: now(), notBefore, upstream }
  const changed = replaceIndex(store, served, built.members, times, kind === 'repair')
  replaceArchive(store, built, changed, times)
  const id = createHash('sha256').update(served.sha256).update(built.sha256, 'hex').digest('hex')
  const body = whole && scope === null ? null : gzip
  store.feeds.replaceUpstreamState(OSV_INDEX, { etag, lastModified, body })
  const publishedAt = now()
  const records = built.members
  const own = { runId, publishedAt, asOf, whole, records, scope: scope?.text ?? null }
  const change = store.snapshots.replaceSnapshot({ source: 'osv', id, ...own })
  store.dates.noteDates(change, publishedAt)
  store.osv.forgetTombstones(timeOfAges(store, now()) - config.data.historyDays * DAY_MS)
  approval.noteApplied()
  if (approval.closesQuarantine()) store.quarantine.supersedeQuarantines(OSV_INDEX, now())
}

function listedIndex({ index, gzip }: ListedIndex): PackedIndex {
  return { body: gzip, size: sizeOf(gzip), sha256: index.sha256 }
}

/**
 * Returns an index that agrees with the store: each entry has the stored stamp, and what is missing or out of scope is
 * not listed. Records that are missing, or stored in an older version than listed, are recorded for the answer to a
 * request for them.
 */
function narrowedIndex(
  osv: Pick<Writes['osv'], 'readEntry' | 'addMissing'>,
  { index, gzip }: ListedIndex,
  ids: Ids,
): Promise<PackedIndex> {
  const keep = (id: string): boolean | { modified: string } => {
    if (ids.get(id) === undefined) return false // out of scope
    const stored = osv.readEntry(id)
    if (stored === null) {
      osv.addMissing(id)
      return false
    }
    const own = { modified: stored.modified }
    if (index.unstamped.has(id)) return own
    if (stored.modified === ids.stamp(id)) return true
    osv.addMissing(id)
    return own
  }
  if (index.isList) return narrowIndex(gzip, keep)
  return Promise.resolve(packIndex(keptEntries(ids, keep)))
}

function* keptEntries(
  ids: Ids,
  keep: (id: string) => boolean | { modified: string },
): Generator<{ id: string; modified: string }> {
  for (const id of ids.ids()) {
    const kept = keep(id)
    if (kept !== false) yield { id, modified: kept === true ? ids.stamp(id) : kept.modified }
  }
}

/** The times from which those of the served documents follow. */
interface Times {
  /** Unix milliseconds. */
  now: number
  /** Unix seconds; no served document may be older. */
  notBefore: number | null
  /** Upstream's date of the index, unix milliseconds. */
  upstream: number | null
}

/** Writes the index to serve, unless it is served already and sound. Returns its Last-Modified, unix seconds. */
function replaceIndex(
  { feeds }: Pick<Writes, 'feeds'>,
  served: PackedIndex,
  entries: number,
  { now, notBefore, upstream }: Times,
  isRepair: boolean,
): number {
  const previous = feeds.readDocument(OSV_INDEX)
  const same = previous?.sha256.equals(served.sha256) === true && previous.changed >= (notBefore ?? 0)
  if (same && !isRepair) return previous.changed
  const seconds = upstream === null ? null : Math.floor(upstream / 1000)
  const last = feeds.lastServed(previous?.changed ?? null)
  const changed = same ? previous.changed : nextChanged(last, seconds, now, notBefore)
  feeds.replaceDocument({ path: OSV_INDEX, source: 'osv', ...served, changed, entries })
  return changed
}

function replaceArchive(
  { osv, feeds }: Pick<Writes, 'osv' | 'feeds'>,
  built: BuiltArchive,
  indexChanged: number,
  { now, notBefore }: Times,
): void {
  if (built.patched) osv.renewParts(built.written)
  else osv.replaceParts(built.written)
  const previous = osv.readArchive()
  if (previous?.sha256 === built.sha256 && previous.changed >= (notBefore ?? 0)) return
  const changed = nextChanged(feeds.lastServed(previous?.changed ?? null), indexChanged, now, notBefore)
  const { file, size, crc32c, sha256 } = built
  osv.replaceArchive({ file, size, crc32c, sha256, changed })
}

function unproven(listed: number, stored: number, members: number): MirrorError {
  return new MirrorError(
    'proof',
    `the index lists ${counted(listed, 'record')}, ${counted(stored, 'is', 'are')} stored and the archive has ${members}; nothing was published: ` +
      'run "patchmirror doctor --data --repair"',
  )
}
