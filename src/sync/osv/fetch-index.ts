import { MirrorError, messageOf } from '../../base/errors.ts'
import { jsonTextOf } from '../../base/json/objects.ts'
import { OSV_ARCHIVE, OSV_INDEX } from '../../base/domain/feed-paths.ts'
import { contentOf, sizeOf } from '../../store/database/gzip.ts'
import type { OsvReader } from '../../store/osv/reads.ts'
import type { Writes } from '../../store/writes.ts'
import { ARCHIVE_TIMEOUT_MS } from '../../upstream/http/download.ts'
import { type Validators, hasEnd } from '../../upstream/http/response.ts'
import type { Session } from '../../upstream/http/session.ts'
import { fetchArchiveRange, passIndex } from '../../upstream/osv.ts'
import { refusePaged } from '../../upstream/whole-document.ts'
import type { SyncContext } from '../context.ts'
import type { Approval } from './approval.ts'
import { type OsvIndex, createIndexReader, endOrReread, memberBeginsPlain, parseMember } from './index-parser.ts'
import { createIdTable } from './id-table.ts'
import { type RunScope, scopeSettings } from './scope.ts'
import { olderThanLast, refuseOlder } from '../older-mirror.ts'
import { lackAbove } from './upstream-mirror.ts'

/** Upstream's index as fetched by this run, with its response headers. */
export interface ListedIndex extends Validators {
  index: OsvIndex
  /** Whether upstream confirmed the stored index, from which the current snapshot was built. */
  stored: boolean
  /** Its bytes as a gzip member. */
  gzip: Buffer
  /** Upstream's date of the response that sent or confirmed it, unix milliseconds. */
  asOf: number
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

/** Fetches the index conditionally, and parses it as it arrives: its text, 82 bytes a record, is never in memory as a whole. */
async function askForIndex(context: SyncContext, scope: RunScope): Promise<ListedIndex | NothingNew> {
  const { session, store, config, kind, full } = context
  const snapshot = store.snapshots.readSnapshot('osv')
  const isWhole = snapshot?.whole === true && !scope.isChanged
  const state = snapshot === null || full ? null : store.feeds.readUpstreamState(OSV_INDEX)
  const answer = await passIndex(session, state, config.upstream.maxJsonBytes, (size) => createIndexReader(size))
  const own = scopeSettings(context.config)
  if (answer.status === 200) {
    const { reader, gzip, meta } = answer
    const whole = (): Buffer => contentOf(gzip, sizeOf(gzip))
    const parsed = endOrReread(reader, undefined, whole)
    refuseOlder(context, OSV_INDEX, meta)
    if (!parsed.isList && !hasEnd(meta)) refuseLines(whole())
    const older = olderThanLast(context, meta, store.feeds.readUpstreamState(OSV_INDEX))
    const why = `upstream's index ${older}, as a copy has it that is behind`
    const lacks = lackAbove(meta, own) ?? parsed.lacks ?? (older === null ? null : { why, scope: null })
    const index = { ...parsed, lacks }
    refusePaged(OSV_INDEX, meta, index.ids.size + index.duplicates + index.unusable)
    const { etag, lastModified, date } = meta
    return { index, stored: false, gzip, etag, lastModified, asOf: date }
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
  const listed = { ...(await readStored(body)), stored: true, etag, lastModified, asOf }
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
