import { MirrorError, messageOf } from '../../core/errors.ts'
import { contentOf, documentMember, sizeOf } from '../../store/database/gzip.ts'
import { OSV_INDEX } from '../../domain/feed-paths.ts'
import { fetchIndex } from '../../upstream/osv.ts'
import { freeBytes } from '../../core/free-bytes.ts'
import { deflate } from '../../zip/member.ts'
import type { Quarantine } from '../../store/runs/quarantine.ts'
import type { ContentProof } from '../../store/runs/snapshots.ts'
import type { SyncContext } from '../context.ts'
import { type OsvIndex, parseIndex } from './index-parser.ts'
import { comparedIndex } from './index/published.ts'
import { isScopeChanged } from './scope/scope.ts'

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
  const { store, session, config, full } = context
  const snapshot = store.snapshots.readSnapshot('osv')
  const state = snapshot === null ? null : store.feeds.readUpstreamState(OSV_INDEX)
  const answer = await fetchIndex(session, full ? null : state, config.upstream.maxJsonBytes)
  if (answer.status === 200) {
    const { etag, lastModified, date } = answer.meta
    const compared = await comparedIndex(context, answer.body)
    const index = compared?.index ?? parseIndex(answer.body)
    const gzip = documentMember(answer.body, answer.gzip, deflate)
    if (compared === null && answer.gzip !== null) freeBytes(answer.body) // decoded, and not read again
    const proof = compared?.proof ?? null
    return { index, stored: false, gzip, etag, lastModified, asOf: date, proof }
  }
  if (answer.status !== 304)
    throw new MirrorError('upstream_shape', `${OSV_INDEX}: upstream sent a partial response (206)`)
  const isComplete =
    snapshot?.whole === true && store.osv.listSuspectIds().length === 0 && !isScopeChanged(context)
  const asOf = answer.meta.date
  if (isComplete && context.kind !== 'reconcile') return { index: null, asOf }
  return { ...storedIndex(context), asOf }
}

/** Returns the quarantined index that the operator approved. */
export function approvedIndex({ body, etag, lastModified, asOf }: Quarantine): ListedIndex {
  const index = parseIndex(contentOf(body, sizeOf(body)))
  return { index, stored: false, gzip: body, etag, lastModified, asOf, proof: null }
}

/** Returns upstream's last index from the store. */
function storedIndex({ store }: SyncContext): Omit<ListedIndex, 'asOf'> {
  const state = store.feeds.readUpstreamState(OSV_INDEX)
  const document = store.feeds.readDocument(OSV_INDEX)
  const body = state?.body ?? document?.body ?? null
  const { etag, lastModified } = state ?? { etag: null, lastModified: null }
  try {
    if (body === null) throw new Error('there is none')
    const index = parseIndex(contentOf(body, sizeOf(body)))
    return { index, stored: true, gzip: body, etag, lastModified, proof: null }
  } catch (error) {
    const why = `upstream confirmed the stored index, but the stored index cannot be read (${messageOf(error)})`
    throw new MirrorError('proof', `${why}: run "patchmirror verify --repair"`, { cause: error })
  }
}
