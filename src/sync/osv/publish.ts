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
import { buildArchive } from '../../archive/build.ts'
import type { BuiltArchive } from '../../archive/writer.ts'
import { isWhole } from './outcome.ts'
import type { ListedIndex } from './fetch-index.ts'
import { listedStamp, narrowIndex } from './index-parser.ts'
import { type Expected, patchArchive } from '../../archive/patch.ts'

/**
 * Publishes the open transaction as a snapshot: the index to serve, the archive rebuilt from the stored streams, and
 * the proof that index ids = stored ids = archive members. Returns their number. Throws `proof` when they differ.
 */
export async function publishOsv(
  context: SyncContext,
  listed: ListedIndex,
  missing: ReadonlyMap<string, string>,
): Promise<number> {
  const { store, config, runId, now } = context
  context.progress({ source: 'osv', phase: 'publish', unit: 'records', done: 0, total: null })
  const whole = isWhole(listed.index, missing)
  const dir = derivedDir(config.data.dir)
  store.osv.clearMissing()
  const { scope } = listed.index
  const served = whole && scope === null ? listedIndex(listed) : narrowedIndex(context, listed)
  const built = await makeArchive(context, listed, dir)
  const stored = store.osv.countRecords()
  const listedIds = whole ? listed.index.ids.size : stored
  const members = await countMembers(join(dir, built.file)) // of the directory, read back from the disk
  if (members !== built.members || members !== stored || members !== listedIds)
    throw unproven(listedIds, stored, members)
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
    body: whole && scope === null ? null : listed.gzip,
  })
  store.snapshots.replaceSnapshot({
    source: 'osv',
    id: snapshot,
    runId,
    publishedAt: now(),
    asOf: listed.asOf,
    records: built.members,
    whole,
    scope: scope?.scope.text ?? null,
  })
  store.osv.forgetTombstones(now() - config.data.tombstoneDays * DAY_MS)
  store.quarantine.supersedeQuarantines(OSV_INDEX, now())
  return built.members
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
 * Returns an index that agrees with the store: each entry has the stored stamp, and what is missing or out of scope is not
 * listed. Records
 * that are missing, or stored in an older version than listed, are recorded for the answer to a request for them.
 */
function narrowedIndex({ store }: SyncContext, { index, gzip }: ListedIndex): ServedIndex {
  const bytes = narrowIndex(contentOf(gzip, sizeOf(gzip)), (id) => {
    if (index.ids.get(id) === undefined) return false // out of scope
    const stored = store.osv.readEntry(id)
    if (stored === null) {
      store.osv.addMissing(id)
      return false
    }
    if (stored.modified === listedStamp(index, id)) return true
    store.osv.addMissing(id)
    return { modified: stored.modified }
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

function unproven(listed: number, stored: number, members: number): MirrorError {
  return new MirrorError(
    'proof',
    `the index lists ${listed} records, ${stored} are stored and the archive has ${members}; nothing was published: ` +
      'run "patchmirror verify --repair"',
  )
}
