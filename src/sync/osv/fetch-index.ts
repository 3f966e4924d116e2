import { MirrorError, messageOf } from '../../base/errors.ts'
import { freeBytes } from '../../base/free-bytes.ts'
import { OSV_INDEX } from '../../base/domain/feed-paths.ts'
import { contentOf, documentMember, sizeOf } from '../../store/database/gzip.ts'
import type { UpstreamState } from '../../store/feeds/documents.ts'
import type { Quarantine } from '../../store/runs/quarantine.ts'
import type { ContentProof } from '../../store/runs/snapshots.ts'
import type { Meta } from '../../upstream/http/response.ts'
import { fetchIndex, passIndex } from '../../upstream/osv.ts'
import { deflate } from '../../archive/zip/member.ts'
import { refusePaged } from '../../upstream/whole-document.ts'
import type { SyncContext } from '../context.ts'
import {
  type IndexReader,
  type OsvIndex,
  createIndexReader,
  endOrReread,
  memberBeginsPlain,
  parseIndex,
  parseMember,
} from './index-parser.ts'
import { createIdTable } from './id-table.ts'
import { comparedIndex, isComparable } from './index/published.ts'
import { isScopeChanged } from './scope/scope.ts'
import { isArchiveUnchanged } from './upstream-archive.ts'

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
  /** Where the index was compared with the published one: that the stored records are the published ones. */
  proof: ContentProof | null
}

/** Upstream has nothing new, and everything listed is stored; it confirmed that at `asOf`. */
type NothingNew = { index: null } & Pick<ListedIndex, 'asOf'>

/** Fetches the index conditionally. */
export async function listOsv(context: SyncContext): Promise<ListedIndex | NothingNew> {
  const { store } = context
  const snapshot = store.snapshots.readSnapshot('osv')
  const state = snapshot === null || context.full ? null : store.feeds.readUpstreamState(OSV_INDEX)
  const fetching = isComparable(context) ? fetchCompared : fetchParsed
  const answer = await fetching(context, state)
  if (answer.status === 200) {
    const { index, gzip, proof, meta } = answer
    refusePaged(OSV_INDEX, meta, index.ids.size + index.duplicates + index.unusable)
    const { etag, lastModified, date } = meta
    return { index, stored: false, gzip, etag, lastModified, asOf: date, proof }
  }
  if (answer.status !== 304)
    throw new MirrorError('upstream_shape', `${OSV_INDEX}: upstream sent a partial response (206)`)
  const isComplete = snapshot?.whole === true && store.osv.listSuspectIds().length === 0 && !isScopeChanged(context)
  const asOf = answer.meta.date
  const isConfirmed = isComplete && context.kind !== 'reconcile'
  if (isConfirmed && (await isStamped(context))) return { index: null, asOf }
  const listed = { ...(await storedIndex(context)), asOf }
  if (!isConfirmed) return listed
  return (await isUnchanged(context, listed)) ? { index: null, asOf } : listed
}

/** Reports whether the stored index begins with a plain entry, which has a stamp, without reading it as a whole. */
async function isStamped({ store }: SyncContext): Promise<boolean> {
  const body = store.feeds.readUpstreamState(OSV_INDEX)?.body
  const gzip = body ?? store.feeds.readDocument(OSV_INDEX)?.body ?? null
  return gzip !== null && memberBeginsPlain(gzip)
}

/** Reports whether upstream changed nothing, where it confirmed the index: one without stamps says nothing of records. */
async function isUnchanged(context: SyncContext, { index }: ListedIndex): Promise<boolean> {
  if (index.unstamped.size === 0) return true
  if (!(await isArchiveUnchanged(context))) return false
  context.facts['silentChanges'] = 0
  return true
}

/** The index that upstream sent, or the status of another response. */
type Fetched =
  ({ status: 200; meta: Meta } & Pick<ListedIndex, 'index' | 'gzip' | 'proof'>) | { status: 206 | 304; meta: Meta }

/** Fetches the index to compare it with the published one, for which both must be in memory. */
async function fetchCompared(context: SyncContext, state: UpstreamState | null): Promise<Fetched> {
  const { session, config } = context
  const answer = await fetchIndex(session, state, config.upstream.maxJsonBytes)
  if (answer.status !== 200) return { status: answer.status, meta: answer.meta }
  const { meta, body } = answer
  const compared = await comparedIndex(context, body)
  const { index, proof } = compared ?? { index: parseIndex(body), proof: null }
  const gzip = documentMember(body, answer.gzip, deflate)
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

/** Gives entries without a stamp that of the stored record: such an index says that it is listed, and nothing of changes. */
export function stamped({ store }: SyncContext, listed: ListedIndex): ListedIndex {
  const { ids, unstamped } = listed.index
  if (unstamped.size === 0) return listed
  const filled = createIdTable(ids.size * 32)
  for (const id of ids.ids()) {
    const own = unstamped.has(id) ? store.osv.readEntry(id)?.modified : undefined
    filled.set(id, own ?? ids.stamp(id))
  }
  return { ...listed, index: { ...listed.index, ids: filled } }
}

/** Returns the quarantined index that the operator approved. */
export async function approvedIndex(approved: Quarantine): Promise<ListedIndex> {
  const { body, etag, lastModified, asOf } = approved
  const index = await parseMember(body)
  return { index, stored: false, gzip: body, etag, lastModified, asOf, proof: null }
}

/** Returns upstream's last index from the store. */
async function storedIndex({ store }: SyncContext): Promise<Omit<ListedIndex, 'asOf'>> {
  const state = store.feeds.readUpstreamState(OSV_INDEX)
  const document = store.feeds.readDocument(OSV_INDEX)
  const body = state?.body ?? document?.body ?? null
  const { etag, lastModified } = state ?? { etag: null, lastModified: null }
  try {
    if (body === null) throw new Error('there is none')
    const index = await parseMember(body)
    return { index, stored: true, gzip: body, etag, lastModified, proof: null }
  } catch (error) {
    const why = `upstream confirmed the stored index, but the stored index cannot be read (${messageOf(error)})`
    throw new MirrorError('proof', `${why}: run "patchmirror doctor --data --repair"`, { cause: error })
  }
}
