import { createHash } from 'node:crypto'
import { join } from 'node:path'
import { DAY_MS, parseDate } from '../../core/time.ts'
import { sha256Of } from '../../core/digest.ts'
import { MirrorError } from '../../core/errors.ts'
import { derivedDir } from '../../store/database/open.ts'
import { nextChanged } from '../../store/feeds/documents.ts'
import { contentOf, packContent, sizeOf } from '../../store/database/gzip.ts'
import { OSV_INDEX } from '../../domain/feed-paths.ts'
import { deflate } from '../../zip/member.ts'
import { countMembers } from '../../zip/reader.ts'
import type { SyncContext } from '../context.ts'
import { buildArchive, rebuildLostArchive } from '../../archive/build.ts'
import type { BuiltArchive } from '../../archive/writer.ts'
import { type OsvIndex, listedStamp, narrowIndex } from './index-parser.ts'
import { type Expected, patchArchive } from '../../archive/patch.ts'
import type { Reads } from '../../store/reads.ts'

/** Upstream's index as fetched by this run, with its response headers. */
export interface ListedIndex {
  index: OsvIndex
  /** Whether upstream confirmed the stored index, from which the current snapshot was built. */
  stored: boolean
  /** Its bytes as a gzip member. */
  gzip: Buffer
  etag: string | null
  lastModified: string | null
  /** Upstream's date of the response that sent or confirmed it, unix milliseconds. */
  asOf: number
}

/**
 * Publishes the open transaction as a snapshot: the index to serve, the archive rebuilt from the stored streams, and
 * the proof that index ids = stored ids = archive members. Throws `proof` when they differ.
 */
export async function publishOsv(
  context: SyncContext,
  listed: ListedIndex,
  whole: boolean,
): Promise<{ snapshot: string; records: number }> {
  const { store, config, runId, now } = context
  const dir = derivedDir(config.data.dir)
  store.osv.clearMissing()
  const listedIds = whole ? listed.index.ids.size : store.osv.countRecords()
  const built = await makeArchive(context, listed, dir)
  await prove(join(dir, built.file), [built.members, store.osv.countRecords()], listedIds)
  const served = whole ? listedIndex(listed) : narrowedIndex(context, listed)
  const notBefore = store.osv.readNewestModified(now())
  const changed = replaceIndex(context, listed, served, { entries: built.members, notBefore })
  replaceArchive(context, built, { changed, notBefore })
  const snapshot = createHash('sha256')
    .update(served.sha256)
    .update(built.sha256, 'hex')
    .digest('hex')
  store.feeds.replaceUpstreamState(OSV_INDEX, {
    etag: listed.etag,
    lastModified: listed.lastModified,
    body: whole ? null : listed.gzip,
  })
  store.snapshots.replaceSnapshot({
    source: 'osv',
    id: snapshot,
    runId,
    publishedAt: now(),
    asOf: listed.asOf,
    records: built.members,
    whole,
  })
  store.osv.forgetTombstones(now() - config.data.tombstoneDays * DAY_MS)
  store.quarantine.supersedeQuarantines(OSV_INDEX, now())
  return { snapshot, records: built.members }
}

/** Minimum records for patching the published archive; a smaller archive is rebuilt from the store in milliseconds. */
const PATCH_FROM = 2_000

/**
 * Builds the archive: an ordinary sync patches the published one; a reconcile, a repair, a full run and the first run
 * read all stored records.
 */
async function makeArchive(
  { store, kind, full }: SyncContext,
  { index }: ListedIndex,
  dir: string,
): Promise<BuiltArchive> {
  const expected: Expected = {
    get: (id) => index.ids.get(id) !== undefined,
    find: (bytes, from, to) => index.ids.find(bytes, from, to) !== undefined,
  }
  const patchable =
    kind === 'sync' && !full && (store.snapshots.readSnapshot('osv')?.records ?? 0) >= PATCH_FROM
  const patched = patchable ? await patchArchive(store.osv, dir, expected) : null
  return patched ?? (await buildArchive(store.osv, dir, expected.get))
}

/** The index to serve: its bytes as a gzip member, their size and digest. */
interface ServedIndex {
  body: Buffer
  size: number
  sha256: Buffer
}

function listedIndex({ index, gzip }: ListedIndex): ServedIndex {
  return { body: gzip, size: sizeOf(gzip), sha256: index.sha256 }
}

/**
 * Returns an index that agrees with the store: each entry has the stored stamp, and a missing record is not listed
 * but recorded as missing, for the answer to a request for it.
 */
function narrowedIndex({ store }: SyncContext, { index, gzip }: ListedIndex): ServedIndex {
  const bytes = narrowIndex(contentOf(gzip, sizeOf(gzip)), (id) => {
    const stored = store.osv.readEntry(id)
    if (stored === null) {
      store.osv.addMissing(id)
      return false
    }
    return stored.modified === listedStamp(index, id) ? true : { modified: stored.modified }
  })
  const sha256 = sha256Of(bytes)
  return { body: packContent(bytes, deflate), size: bytes.length, sha256 }
}

function replaceIndex(
  { store, now, kind }: SyncContext,
  listed: ListedIndex,
  served: ServedIndex,
  { entries, notBefore }: { readonly entries: number; readonly notBefore: number | null },
): number {
  const previous = store.feeds.readDocument(OSV_INDEX)
  const same =
    previous?.sha256.equals(served.sha256) === true && previous.changed >= (notBefore ?? 0)
  if (same && kind !== 'repair') return previous.changed
  const upstream = parseDate(listed.lastModified)
  const seconds = upstream === null ? null : Math.floor(upstream / 1000)
  const changed = same
    ? previous.changed
    : nextChanged(previous?.changed ?? null, seconds, now(), notBefore)
  store.feeds.replaceDocument({ path: OSV_INDEX, source: 'osv', ...served, changed, entries })
  return changed
}

function replaceArchive(
  { store, now }: SyncContext,
  built: BuiltArchive,
  {
    changed: indexChanged,
    notBefore,
  }: { readonly changed: number; readonly notBefore: number | null },
): void {
  if (built.patched) store.osv.renewParts(built.written)
  else store.osv.replaceParts(built.written)
  const previous = store.osv.readArchive()
  if (previous?.sha256 === built.sha256 && previous.changed >= (notBefore ?? 0)) return
  const changed = nextChanged(previous?.changed ?? null, indexChanged, now(), notBefore)
  const { file, size, crc32c: crc, sha256 } = built
  store.osv.replaceArchive({ file, size, crc32c: crc, sha256, changed })
}

/** Reads the central directory back from the disk and compares its count with the index and the store. */
async function prove(
  path: string,
  [written, stored]: [written: number, stored: number],
  listed: number,
): Promise<void> {
  const members = await countMembers(path)
  if (members === written && written === stored && stored === listed) return
  throw new MirrorError(
    'proof',
    `the index lists ${listed} records, ${stored} are stored and the archive has ${members}; nothing was published: ` +
      'run "patchmirror verify --repair"',
  )
}

/**
 * Updates the dates of an unchanged snapshot when a stamp that was in the future at its publication has become the
 * newest past one: no Last-Modified may be older than it. Uses its own transaction; usually there is nothing to do.
 */
export async function keepDated({ store, now, dryRun }: SyncContext): Promise<void> {
  const notBefore = store.osv.readNewestModified(now())
  const index = store.feeds.listDocuments('osv').find(({ path }) => path === OSV_INDEX)
  const archive = store.osv.readArchive()
  const snapshot = store.snapshots.readSnapshot('osv')
  if (dryRun || notBefore === null || index === undefined || archive === null || snapshot === null)
    return
  if (Math.min(index.changed, archive.changed) >= notBefore) return
  await store.exclusive(() => {
    const stored = store.feeds.readDocument(OSV_INDEX)
    if (stored !== null && stored.changed < notBefore)
      store.feeds.replaceDocument({ ...stored, changed: notBefore })
    if (archive.changed < notBefore) store.osv.replaceArchive({ ...archive, changed: notBefore })
    store.snapshots.replaceSnapshot({ ...snapshot, publishedAt: now() })
  })
}

type StoredRecords = Pick<Reads, 'snapshots' | 'feeds' | 'osv'>

/**
 * Proves that the store is still what was published, by count and digest, at the end of a run without changes, and
 * that the archive exists (a missing one is rebuilt; a reconcile also reads it through and repairs it). Throws
 * `proof` when the database was altered since.
 */
export async function proveStored({ store, config, dryRun, kind }: SyncContext): Promise<void> {
  const fault = faultOfStored(store)
  if (fault !== null) {
    throw new MirrorError(
      'proof',
      `upstream has nothing new, but ${fault}: run "patchmirror verify --repair"`,
    )
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
    return `${records} records are stored, but ${snapshot.records} were published`
  if (stored.osv.countBodies() !== records) return 'contents of records are missing'
  const id = createHash('sha256').update(index.sha256).update(archive.sha256, 'hex').digest('hex')
  return id === snapshot.id ? null : 'index and archive differ from the published ones'
}
