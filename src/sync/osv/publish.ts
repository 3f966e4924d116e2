import { createHash } from 'node:crypto'
import { join } from 'node:path'
import { MirrorError } from '../../core/errors.ts'
import { derivedDir } from '../../store/database/open.ts'
import { nextChanged } from '../../store/feeds/documents.ts'
import { contentOf, packContent, sizeOf } from '../../store/database/gzip.ts'
import { OSV_INDEX } from '../../upstream/osv.ts'
import { deflate } from '../../zip/member.ts'
import { countMembers } from '../../zip/reader.ts'
import type { SyncContext } from '../context.ts'
import { buildArchive, rebuildLostArchive } from '../../archive/build.ts'
import type { BuiltArchive } from '../../archive/writer.ts'
import { type OsvIndex, listedStamp, narrowIndex } from './index-parser.ts'
import { type Expected, patchArchive } from '../../archive/patch.ts'
import type { Reads } from '../../store/reads.ts'

/** Upstream's index as this run has it: its entries, and what came with it. */
export interface ListedIndex {
  index: OsvIndex
  /** Upstream confirmed it: it is the one that the snapshot held was made from. */
  held: boolean
  /** Its bytes, as a gzip member. */
  gzip: Buffer
  etag: string | null
  lastModified: string | null
  /** Upstream's date when it gave or confirmed it, unix milliseconds. */
  asOf: number
}

/**
 * Turns what the open transaction holds into a snapshot: the index to serve, the archive rebuilt from the stored
 * streams, and the proof that index ids = stored ids = archive members. Throws `proof` when they are not.
 */
export async function publishOsv(
  context: SyncContext,
  listed: ListedIndex,
  whole: boolean,
): Promise<{ snapshot: string; records: number }> {
  const { store, config, runId, now } = context
  const dir = derivedDir(config.data.dir)
  store.clearMissing()
  const listedIds = whole ? listed.index.ids.size : store.countRecords()
  const built = await makeArchive(context, listed, dir)
  await prove(join(dir, built.file), [built.members, store.countRecords()], listedIds)
  const served = whole ? listedIndex(listed) : narrowedIndex(context, listed)
  const least = store.readNewestModified(now())
  const changed = replaceIndex(context, listed, served, { entries: built.members, least })
  replaceArchive(context, built, { changed, least })
  const snapshot = createHash('sha256')
    .update(served.sha256)
    .update(built.sha256, 'hex')
    .digest('hex')
  store.replaceUpstreamState(OSV_INDEX, {
    etag: listed.etag,
    lastModified: listed.lastModified,
    body: whole ? null : listed.gzip,
  })
  store.replaceSnapshot({
    source: 'osv',
    id: snapshot,
    runId,
    publishedAt: now(),
    asOf: listed.asOf,
    records: built.members,
    whole,
  })
  store.forgetTombstones(now() - config.data.tombstoneDays * 86_400_000)
  store.supersedeQuarantines(OSV_INDEX, now())
  return { snapshot, records: built.members }
}

/** From so many records on it pays to patch the published archive: fewer are read from the store in milliseconds. */
const PATCH_FROM = 2_000

/**
 * An ordinary sync patches the published archive; whatever is to compare or to mend reads all that is stored, as
 * does the first run.
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
    kind === 'sync' && !full && (store.readSnapshot('osv')?.records ?? 0) >= PATCH_FROM
  const patched = patchable ? await patchArchive(store, dir, expected) : null
  return patched ?? (await buildArchive(store, dir, expected.get))
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
 * Index and records cannot disagree: each entry says what is held, and what is not held is not listed, but noted as
 * missing: an answer about such a record looks it up there.
 */
function narrowedIndex({ store }: SyncContext, { index, gzip }: ListedIndex): ServedIndex {
  const bytes = narrowIndex(contentOf(gzip, sizeOf(gzip)), (id) => {
    const held = store.readEntry(id)
    if (held === null) {
      store.addMissing(id)
      return false
    }
    return held.modified === listedStamp(index, id) ? true : { modified: held.modified }
  })
  const sha256 = createHash('sha256').update(bytes).digest()
  return { body: packContent(bytes, deflate), size: bytes.length, sha256 }
}

function replaceIndex(
  { store, now, kind }: SyncContext,
  listed: ListedIndex,
  served: ServedIndex,
  { entries, least }: { readonly entries: number; readonly least: number | null },
): number {
  const previous = store.readDocument(OSV_INDEX)
  const same = previous?.sha256.equals(served.sha256) === true && previous.changed >= (least ?? 0)
  if (same && kind !== 'repair') return previous.changed
  const upstream = Date.parse(listed.lastModified ?? '')
  const seconds = Number.isNaN(upstream) ? null : Math.floor(upstream / 1000)
  const changed = same
    ? previous.changed
    : nextChanged(previous?.changed ?? null, seconds, now(), least)
  store.replaceDocument({ path: OSV_INDEX, source: 'osv', ...served, changed, entries })
  return changed
}

function replaceArchive(
  { store, now }: SyncContext,
  built: BuiltArchive,
  { changed: indexChanged, least }: { readonly changed: number; readonly least: number | null },
): void {
  if (built.patched) store.renewParts(built.written)
  else store.replaceParts(built.written)
  const previous = store.readArchive()
  if (previous?.sha256 === built.sha256 && previous.changed >= (least ?? 0)) return
  const changed = nextChanged(previous?.changed ?? null, indexChanged, now(), least)
  const { file, size, crc32c: crc, sha256 } = built
  store.replaceArchive({ file, size, crc32c: crc, sha256, changed })
}

/** Reads the archive's end back from the disk: what was written is what a client will find. */
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
 * Moves the dates of a snapshot that stays what it is, where a stamp that lay in the future when it was published has become
 * the newest one since: no Last-Modified is older than that. In a transaction of its own; mostly there is nothing to do.
 */
export async function keepDated({ store, now, dryRun }: SyncContext): Promise<void> {
  const least = store.readNewestModified(now())
  const index = store.listDocuments('osv').find(({ path }) => path === OSV_INDEX)
  const archive = store.readArchive()
  const snapshot = store.readSnapshot('osv')
  if (dryRun || least === null || index === undefined || archive === null || snapshot === null)
    return
  if (Math.min(index.changed, archive.changed) >= least) return
  await store.exclusive(() => {
    const held = store.readDocument(OSV_INDEX)
    if (held !== null && held.changed < least) store.replaceDocument({ ...held, changed: least })
    if (archive.changed < least) store.replaceArchive({ ...archive, changed: least })
    store.replaceSnapshot({ ...snapshot, publishedAt: now() })
  })
}

type StoredRecords = Pick<
  Reads,
  'readSnapshot' | 'listDocuments' | 'readArchive' | 'countRecords' | 'countBodies'
>

/**
 * The proof of a run that changes nothing: what is held is still what was published, by count and by digest, and its
 * archive lies there (a lost one is rebuilt; a reconcile also reads it through, and mends it). Throws `proof` when something altered the database since.
 */
export async function proveStored({ store, config, dryRun, kind }: SyncContext): Promise<void> {
  const fault = faultOfStored(store)
  if (fault !== null) {
    throw new MirrorError(
      'proof',
      `upstream has nothing new, but ${fault}: run "patchmirror verify --repair"`,
    )
  }
  if (!dryRun) await rebuildLostArchive(store, config.data.dir, kind === 'reconcile')
}

/** Why index, records and archive held are not the published snapshot; null when they are, or none was published. */
export function faultOfStored(held: StoredRecords): string | null {
  const snapshot = held.readSnapshot('osv')
  const index = held.listDocuments('osv').find(({ path }) => path === OSV_INDEX)
  const archive = held.readArchive()
  const records = held.countRecords()
  if (snapshot === null) return records > 0 ? 'the records held were never published' : null
  if (index?.present !== true) return 'the index is lost'
  if (archive === null) return 'the archive is lost'
  if (records !== snapshot.records)
    return `${records} records are held where ${snapshot.records} were published`
  if (held.countBodies() !== records) return 'bytes of records are lost'
  const id = createHash('sha256').update(index.sha256).update(archive.sha256, 'hex').digest('hex')
  return id === snapshot.id ? null : 'index and archive are not the ones published'
}
