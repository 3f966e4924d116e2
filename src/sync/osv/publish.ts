import { createHash } from 'node:crypto'
import { join } from 'node:path'
import { counted } from '../../base/text.ts'
import { DAY_MS, readHttpDate } from '../../base/time.ts'
import { MirrorError } from '../../base/errors.ts'
import { derivedDir } from '../../store/database/open.ts'
import { nextChanged } from '../../store/feeds/documents.ts'
import { sizeOf } from '../../store/database/gzip.ts'
import { OSV_INDEX } from '../../base/domain/feed-paths.ts'
import { countMembers } from '../../archive/zip/reader.ts'
import type { Writes } from '../../store/writer.ts'
import type { SyncContext } from '../context.ts'
import { buildArchive } from '../../archive/build.ts'
import { type BuiltArchive, type Draft } from '../../archive/draft.ts'
import { closesQuarantine } from './approval.ts'
import { isWhole } from './outcome.ts'
import type { ListedIndex } from './fetch-index.ts'
import { timeOfAges } from '../../store/runs/age-limit.ts'
import { type PackedIndex, narrowIndex, packIndex } from './index-parser.ts'
import { type Expected, patchArchive } from '../../archive/patch.ts'

/** Minimum records for patching the published archive; a smaller archive is rebuilt from the store in milliseconds. */
const PATCH_FROM = 2_000

/** The archive as the transaction found it. */
interface ArchiveBefore {
  /** The archive that is written along with the records of an empty store. */
  readonly draft: Draft | null
  /** The published archive differed from the store when the transaction began. */
  readonly wasDirty: boolean
}

/**
 * Publishes the open transaction as a snapshot: the index to serve, the archive rebuilt from the stored streams (an
 * ordinary sync patches the published one), and the proof that index ids = stored ids = archive members. Returns their
 * number. Throws `proof` when they differ.
 */
export async function publishOsv(
  context: SyncContext,
  listed: ListedIndex,
  missing: ReadonlyMap<string, string>,
  { draft, wasDirty }: ArchiveBefore,
): Promise<number> {
  const { store, config, kind, full } = context
  context.progress({ source: 'osv', phase: 'publish', unit: 'records', done: 0, total: null })
  const { ids, scope } = listed.index
  const whole = isWhole(listed.index, missing)
  const dir = derivedDir(config.data.dir)
  store.osv.clearMissing()
  const served = whole && scope === null ? listedIndex(listed) : await narrowedIndex(store.osv, listed)
  const isListed = (id: string): boolean => ids.get(id) !== undefined
  const published = store.snapshots.readSnapshot('osv')?.records ?? 0
  const isPatchable = kind === 'sync' && !full && published >= PATCH_FROM
  const upstream = readHttpDate(listed.lastModified)
  const stored = store.osv.countRecords()
  const listedIds = whole ? ids.size : stored
  const publish = (built: BuiltArchive): void => {
    if (built.members !== stored || stored !== listedIds) throw unproven(listedIds, stored, built.members)
    replaceSnapshot(context, listed, { whole, served, built, upstream })
  }
  const listWritten = () => (wasDirty ? null : store.osv.listWritten())
  const patched = isPatchable
    ? await patchArchive(
        store.osv,
        dir,
        { ...expectedMembers(listed.index, isListed), written: listWritten() },
        publish,
      )
    : null
  const { file, members } =
    patched ??
    (draft?.isOpen() === true ? await draft.finish(publish) : null) ??
    (await buildArchive(store.osv, dir, isListed, publish))
  const read = await countMembers(join(dir, file)) // of the directory, read back from the disk
  if (read !== members) throw unproven(listedIds, stored, read)
  return members
}

/**
 * Decides which members may be in a patched archive. Where the stored records were proved to be the published ones (an
 * index known by its difference), its members were listed, and those that are not listed any more are known.
 */
function expectedMembers(
  { ids, difference }: ListedIndex['index'],
  isListed: (id: string) => boolean,
): Omit<Expected, 'written'> {
  if (difference === null) return { get: isListed, find: (bytes, from, to) => ids.find(bytes, from, to) !== undefined }
  const removed = new Set(difference.removed)
  return { get: (id) => !removed.has(id), find: null }
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
  context: SyncContext,
  { index: { scope }, etag, lastModified, gzip, asOf, proof }: ListedIndex,
  { whole, served, built, upstream }: Publication,
): void {
  const { store, config, runId, kind, now } = context
  const notBefore = store.osv.readNewestModified(now())
  const times = { now: now(), notBefore, upstream }
  const changed = replaceIndex(store, served, built.members, times, kind === 'repair')
  replaceArchive(store.osv, built, changed, times)
  const id = createHash('sha256').update(served.sha256).update(built.sha256, 'hex').digest('hex')
  const body = whole && scope === null ? null : gzip
  store.feeds.replaceUpstreamState(OSV_INDEX, { etag, lastModified, body })
  const publishedAt = now()
  const snapshot = { source: 'osv', id, runId, publishedAt, asOf, whole } as const
  const counted = { records: built.members, scope: scope?.scope.text ?? null }
  const change = store.snapshots.replaceSnapshot({ ...snapshot, ...counted }, proof)
  store.dates.noteDates(change, publishedAt)
  store.osv.forgetTombstones(timeOfAges(store, now()) - config.data.tombstoneDays * DAY_MS)
  if (closesQuarantine(context)) store.quarantine.supersedeQuarantines(OSV_INDEX, now())
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
): Promise<PackedIndex> {
  const keep = (id: string): boolean | { modified: string } => {
    if (index.ids.get(id) === undefined) return false // out of scope
    const stored = osv.readEntry(id)
    if (stored === null) {
      osv.addMissing(id)
      return false
    }
    const own = { modified: stored.modified }
    if (index.unstamped.has(id)) return own
    if (stored.modified === index.ids.stamp(id)) return true
    osv.addMissing(id)
    return own
  }
  if (index.isList) return narrowIndex(gzip, keep)
  return Promise.resolve(packIndex(keptEntries(index, keep)))
}

function* keptEntries(
  { ids }: ListedIndex['index'],
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
  const changed = same ? previous.changed : nextChanged(previous?.changed ?? null, seconds, now, notBefore)
  feeds.replaceDocument({ path: OSV_INDEX, source: 'osv', ...served, changed, entries })
  return changed
}

function replaceArchive(
  osv: Writes['osv'],
  built: BuiltArchive,
  indexChanged: number,
  { now, notBefore }: Times,
): void {
  if (built.patched) osv.renewParts(built.written)
  else osv.replaceParts(built.written)
  const previous = osv.readArchive()
  if (previous?.sha256 === built.sha256 && previous.changed >= (notBefore ?? 0)) return
  const changed = nextChanged(previous?.changed ?? null, indexChanged, now, notBefore)
  const { file, size, crc32c: crc, sha256 } = built
  osv.replaceArchive({ file, size, crc32c: crc, sha256, changed })
}

function unproven(listed: number, stored: number, members: number): MirrorError {
  return new MirrorError(
    'proof',
    `the index lists ${counted(listed, 'record')}, ${counted(stored, 'is', 'are')} stored and the archive has ${members}; nothing was published: ` +
      'run "patchmirror doctor --data --repair"',
  )
}
