import { MirrorError } from '../../core/errors.ts'
import { OSV_ARCHIVE } from '../../domain/feed-paths.ts'
import type { SyncContext } from '../context.ts'
import { type OsvPlan, isEmpty } from './diff.ts'
import type { ListedIndex } from './fetch-index.ts'
import { type FetchResult, fetchContradicted, fetchSingles } from './fetch-records.ts'
import { ingestArchive } from './ingest.ts'
import {
  type ArchiveValidators,
  type UpstreamArchive,
  downloadArchive,
  openRemoteArchive,
} from './upstream-archive.ts'

/** Records that wait in the staging table; `store`: all that could be fetched are stored already. */
export interface StagedRecords {
  place: 'store' | 'staging'
  result: FetchResult
  /** Validators of the archive that was compared with the store; null: none was. */
  compared: ArchiveValidators | null
}

/** Records of a downloaded archive: they are written while it is read, within the transaction. */
export interface ArchivedRecords {
  place: 'archive'
  archive: UpstreamArchive
  compared: ArchiveValidators
}

/** The records that a run fetched, by the place where they wait for the commit. */
export type FetchedRecords = StagedRecords | ArchivedRecords

/** Fetches the records of the difference; a reconcile fetches those whose contents differ as well. */
export async function fetchChanges(
  context: SyncContext,
  listed: ListedIndex,
  plan: OsvPlan,
): Promise<FetchedRecords> {
  const { staging } = context.store.osv
  staging.clear()
  const strategy = strategyOf(context, listed, plan)
  if (strategy === 'nothing') return nothingFetched(null)
  if (strategy === 'singles') {
    const result = await fetchSingles(context, listed.index, [...plan.added, ...plan.changed])
    return { place: staging.isEmpty() ? 'store' : 'staging', result, compared: null }
  }
  if (strategy === 'ranges') {
    const fetched = await fetchByRanges(context, listed, plan)
    if (fetched !== null) return fetched
    staging.clear()
  }
  return fetchWholeArchive(context, listed, plan)
}

type Strategy = 'nothing' | 'singles' | 'archive' | 'ranges'

function strategyOf(
  { kind, full, config }: SyncContext,
  { index }: ListedIndex,
  plan: OsvPlan,
): Strategy {
  // Few records of many may be in scope: then the archive is not worth its bytes, and an empty store may be complete.
  if (full || (plan.stored === 0 && index.scope === null)) return 'archive'
  if (kind === 'reconcile') return 'ranges'
  if (isEmpty(plan)) return 'nothing'
  return plan.added.length + plan.changed.length > config.osv.archiveThreshold
    ? 'archive'
    : 'singles'
}

function nothingFetched(compared: ArchiveValidators | null): StagedRecords {
  return { place: 'store', result: { missing: new Map(), suspectIds: [] }, compared }
}

/**
 * Compares contents by the archive's directory and stages only the members that differ. Returns null when the archive
 * cannot be read in ranges.
 */
async function fetchByRanges(
  context: SyncContext,
  { index }: ListedIndex,
  plan: OsvPlan,
): Promise<StagedRecords | null> {
  const { session, facts, store } = context
  const before = session.cost.bytes
  const known = isEmpty(plan) ? store.feeds.readUpstreamState(OSV_ARCHIVE) : null
  try {
    const archive = await openRemoteArchive(context, known?.etag ?? null)
    if (archive === 'unchanged') {
      facts['silentChanges'] = 0
      return nothingFetched(null)
    }
    if (archive === 'unavailable')
      throw new MirrorError('archive', 'upstream does not honour ranges of the archive')
    const { written, contradicted } = await ingestArchive(context, index, archive, 'staging')
    facts['savedBytes'] = archive.reader.size - (session.cost.bytes - before)
    if (isEmpty(plan) && written === 0 && contradicted.length === 0)
      return nothingFetched(archive.validators)
    const result = await fetchContradicted(context, index, contradicted)
    return { place: 'staging', result, compared: archive.validators }
  } catch (error) {
    if (!(error instanceof MirrorError) || error.code !== 'archive') throw error
    facts['rangesFailed'] = error.message
    return null
  }
}

/**
 * Downloads the whole archive. When that fails, fetches records one by one, up to `osv.maxSingleFetches`. Not for a
 * reconcile: without the archive it has compared nothing and must not report that it did.
 */
async function fetchWholeArchive(
  context: SyncContext,
  { index }: ListedIndex,
  plan: OsvPlan,
): Promise<FetchedRecords> {
  try {
    const archive = await downloadArchive(context)
    return { place: 'archive', archive, compared: archive.validators }
  } catch (error) {
    context.session.signal.throwIfAborted()
    const ids = context.full ? [...index.ids.ids()] : [...plan.added, ...plan.changed]
    const isServiceError =
      error instanceof MirrorError && error.code !== 'storage' && error.code !== 'upstream_auth'
    const allowed = ids.length <= context.config.osv.maxSingleFetches
    if (!isServiceError || context.kind === 'reconcile' || !allowed) throw error
    context.facts['archiveFailed'] = error.message
    const result = await fetchSingles(context, index, ids)
    return { place: 'staging', result, compared: null }
  }
}
