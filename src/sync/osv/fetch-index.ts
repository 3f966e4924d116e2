import { isUtf8 } from 'node:buffer'
import { sha256Of } from '../../base/digest.ts'
import { MirrorError, messageOf } from '../../base/errors.ts'
import { freeBytes } from '../../base/free-bytes.ts'
import { jsonTextOf } from '../../base/json/objects.ts'
import { OSV_ARCHIVE, OSV_INDEX } from '../../base/domain/feed-paths.ts'
import { contentInPool, contentOf, documentMember, sizeOf } from '../../store/database/gzip.ts'
import type { UpstreamState } from '../../store/feeds/documents.ts'
import type { OsvReader } from '../../store/osv/reads.ts'
import type { Writes } from '../../store/writes.ts'
import { ARCHIVE_TIMEOUT_MS } from '../../upstream/http/download.ts'
import { type Meta, type Validators, hasEnd } from '../../upstream/http/response.ts'
import type { Session } from '../../upstream/http/session.ts'
import { fetchArchiveRange, fetchIndex, passIndex } from '../../upstream/osv.ts'
import { refusePaged } from '../../upstream/whole-document.ts'
import type { SyncContext } from '../context.ts'
import type { Approval } from './approval.ts'
import {
  type IndexReader,
  type OsvIndex,
  beginsPlain,
  createIndexReader,
  endOrReread,
  memberBeginsPlain,
  parseIndex,
  parseMember,
} from './index-parser.ts'
import { createIdTable, createLateIds } from './id-table.ts'
import { type IndexDifference, differenceOfIndexes } from './index/difference.ts'
import { type RunScope, scopeSettings } from './scope.ts'
import { olderThanLast, refuseOlder } from '../older-mirror.ts'
import { lackAbove } from './upstream-mirror.ts'
import type { ContentProof } from '../../store/replication/record-lines.ts'

/** Upstream's index as fetched by this run, with its response headers. */
export interface ListedIndex extends Validators {
  index: OsvIndex
  /** Whether upstream confirmed the stored index, from which the current snapshot was built. */
  stored: boolean
  /** Its bytes as a gzip member. */
  gzip: Buffer
  /** Upstream's date of the response that sent or confirmed it, unix milliseconds. */
  asOf: number
  /** Where the index was compared with the published one: that the stored records are the published ones. */
  proof: ContentProof | null
}

/** Upstream has nothing new, and everything listed is stored; it confirmed that at `asOf`. */
type NothingNew = { index: null } & Pick<ListedIndex, 'asOf'>

/**
 * Lists what there is to mirror: the refused index that was approved, or upstream's. Entries without a stamp have that of
 * the stored record, and what is out of scope by its id is left out.
 */
export async function listOsv(
  context: SyncContext,
  scope: RunScope,
  approval: Approval,
): Promise<ListedIndex | NothingNew> {
  const { store } = context
  const fetched = (await approval.readIndex()) ?? (await askForIndex(context, scope))
  approval.expectIndex(fetched.index?.sha256 ?? null)
  if (fetched.index === null) return fetched
  return { ...fetched, index: scope.narrow(stamped(store.osv, fetched.index)) }
}

/** Fetches the index conditionally. */
async function askForIndex(context: SyncContext, scope: RunScope): Promise<ListedIndex | NothingNew> {
  const { store, kind, full } = context
  const snapshot = store.snapshots.readSnapshot('osv')
  const isWhole = snapshot?.whole === true && !scope.isChanged
  const state = snapshot === null || full ? null : store.feeds.readUpstreamState(OSV_INDEX)
  const fetching = isWhole && snapshot.scope === null && kind === 'sync' && !full ? fetchCompared : fetchParsed
  const answer = await fetching(context, state)
  const own = scopeSettings(context.config)
  if (answer.status === 200) {
    const { gzip, proof, meta } = answer
    refuseOlder(context, OSV_INDEX, meta)
    if (!answer.index.isList && !hasEnd(meta)) refuseLines(contentOf(gzip, sizeOf(gzip)))
    const older = olderThanLast(context, meta, store.feeds.readUpstreamState(OSV_INDEX))
    const why = `upstream's index ${older}, as a copy has it that is behind`
    const lacks = lackAbove(meta, own) ?? answer.index.lacks ?? (older === null ? null : { why, scope: null })
    const index = { ...answer.index, lacks }
    refusePaged(OSV_INDEX, meta, index.ids.size + index.duplicates + index.unusable)
    const { etag, lastModified, date } = meta
    return { index, stored: false, gzip, etag, lastModified, asOf: date, proof }
  }
  if (answer.status !== 304)
    throw new MirrorError('upstream_shape', `${OSV_INDEX}: upstream sent a partial response (206)`)
  const lacks = lackAbove(answer.meta, own)
  const isComplete = isWhole && lacks === null && store.osv.listSuspectIds().length === 0 && kind !== 'reconcile'
  const confirmed = await confirmedIndex(context, answer.meta.date, isComplete)
  if (confirmed.index === null) return confirmed
  return { ...confirmed, index: { ...confirmed.index, lacks: lacks ?? confirmed.index.lacks } }
}

/** Throws `upstream_shape` for JSON Lines, which may be cut off where the response does not show its end. */
function refuseLines(content: Buffer): void {
  try {
    JSON.parse(jsonTextOf(content))
  } catch (error) {
    const message = `${OSV_INDEX}: it may be cut off: the response has no Content-Length and no chunks`
    throw new MirrorError('upstream_shape', message, { cause: error })
  }
}

/**
 * Returns the stored index, which upstream confirmed; nothing new where everything that it lists is stored (`isComplete`) and
 * upstream changed none of its records: one with stamps says that itself, for the others the archive must be the same.
 */
async function confirmedIndex(
  { session, store, facts }: SyncContext,
  asOf: number,
  isComplete: boolean,
): Promise<ListedIndex | NothingNew> {
  const state = store.feeds.readUpstreamState(OSV_INDEX)
  const body = state?.body ?? store.feeds.readDocument(OSV_INDEX)?.body ?? null
  // One that begins with a plain entry has stamps: it need not be read as a whole.
  if (isComplete && body !== null && (await memberBeginsPlain(body))) return { index: null, asOf }
  const { etag, lastModified } = state ?? { etag: null, lastModified: null }
  const listed = { ...(await readStored(body)), stored: true, etag, lastModified, asOf, proof: null }
  if (!isComplete) return listed
  if (listed.index.unstamped.size > 0) {
    if (!(await isArchiveUnchanged(session, store.feeds))) return listed
    facts['silentChanges'] = 0
  }
  return { index: null, asOf }
}

/** Asks whether upstream's archive is still the one that was last compared with the store; false when that is not known. */
async function isArchiveUnchanged(session: Session, feeds: Writes['feeds']): Promise<boolean> {
  const known = feeds.readUpstreamState(OSV_ARCHIVE)
  if (known === null || (known.etag === null && known.lastModified === null)) return false
  const answer = await fetchArchiveRange(session, { suffix: 1 }, { known }, ARCHIVE_TIMEOUT_MS)
  return answer === 'unchanged'
}

/** The index that upstream sent, or the status of another response. */
type Fetched =
  ({ status: 200; meta: Meta } & Pick<ListedIndex, 'index' | 'gzip' | 'proof'>) | { status: 206 | 304; meta: Meta }

/** Fetches the index to compare it with the published one, for which both must be in memory. */
async function fetchCompared(context: SyncContext, state: UpstreamState | null): Promise<Fetched> {
  const { session, config, store } = context
  const answer = await fetchIndex(session, state, config.upstream.maxJsonBytes)
  if (answer.status !== 200) return { status: answer.status, meta: answer.meta }
  const { meta, body } = answer
  const compared = await comparedIndex(store, body)
  const { index, proof } = compared ?? { index: parseIndex(body), proof: null }
  const gzip = documentMember(body, answer.gzip)
  if (compared === null && answer.gzip !== null) freeBytes(body) // decoded, and not read again
  return { status: 200, meta, index, proof, gzip }
}

/** Fetches the index and parses it as it arrives: its text, 82 bytes a record, is never in memory as a whole. */
async function fetchParsed({ session, config }: SyncContext, state: UpstreamState | null): Promise<Fetched> {
  const open = (size: number): IndexReader => createIndexReader(size)
  const answer = await passIndex(session, state, config.upstream.maxJsonBytes, open)
  if (answer.status !== 200) return { status: answer.status, meta: answer.meta }
  const { meta, reader, gzip } = answer
  const whole = (): Buffer => contentOf(gzip, sizeOf(gzip))
  return { status: 200, meta, index: endOrReread(reader, undefined, whole), gzip, proof: null }
}

/** An index that is known by its difference, and the proof that the stored records are the published ones. */
interface ComparedIndex {
  index: OsvIndex
  proof: ContentProof
}

/**
 * Returns a fetched index that is comparable by its difference to the published one, without parsing what is equal; the
 * same value as `parseIndex` otherwise. The stored digests must prove that index and records are still the published
 * ones: then the difference between the indexes is the difference to the stored records. Null when it must be parsed.
 */
async function comparedIndex(store: Writes, bytes: Buffer): Promise<ComparedIndex | null> {
  const records = store.snapshots.readSnapshot('osv')?.records ?? 0
  if (!isUtf8(bytes) || !beginsPlain(bytes)) return null
  const inflated = readPublished(store) // in the thread pool, while this thread reads the records
  const proof = store.snapshots.proveRecords()
  const published = await inflated
  if (published === null || proof?.records !== records) return null
  const isPublished = (id: string): boolean => store.osv.readEntry(id) !== null
  const found = differenceOfIndexes(bytes, published, records, isPublished)
  return found === null ? null : { index: byDifference(bytes, found, records), proof }
}

/** Returns the published index; null when its bytes are not those of its digest. */
async function readPublished(store: Writes): Promise<Buffer | null> {
  const document = store.feeds.readDocument(OSV_INDEX)
  if (document === null || document.body === null) return null
  try {
    const bytes = await contentInPool(document.body, document.size)
    return sha256Of(bytes).equals(document.sha256) ? bytes : null
  } catch {
    return null // damaged; this run writes it again
  }
}

function byDifference(bytes: Buffer, found: IndexDifference, records: number): OsvIndex {
  const { listed, ...difference } = found
  const size = records + found.added.length - found.removed.length
  return {
    sha256: sha256Of(bytes),
    ids: createLateIds(size, listed, () => parseIndex(bytes).ids),
    difference: { ...difference, stored: records },
    duplicates: 0,
    unusable: 0,
    unnamed: 0,
    skipped: [],
    unstamped: new Set(),
    isList: true,
    scope: null,
    lacks: null,
  }
}

/** Gives entries without a stamp that of the stored record: such an index says that it is listed, and nothing of changes. */
function stamped(osv: Pick<OsvReader, 'readEntry'>, index: OsvIndex): OsvIndex {
  const { ids, unstamped } = index
  if (unstamped.size === 0) return index
  const filled = createIdTable(ids.size * 32)
  for (const id of ids.ids()) {
    const own = unstamped.has(id) ? osv.readEntry(id)?.modified : undefined
    filled.set(id, own ?? ids.stamp(id))
  }
  return { ...index, ids: filled }
}

/** Reads upstream's last index as it is stored. */
async function readStored(body: Buffer | null): Promise<Pick<ListedIndex, 'index' | 'gzip'>> {
  try {
    if (body === null) throw new Error('there is none')
    return { index: await parseMember(body), gzip: body }
  } catch (error) {
    const why = `upstream confirmed the stored index, but the stored index cannot be read (${messageOf(error)})`
    throw new MirrorError('proof', `${why}: run "patchmirror doctor --data --repair"`, { cause: error })
  }
}
