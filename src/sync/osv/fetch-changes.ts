import { MirrorError } from '../../base/errors.ts'
import { isKeyRefused } from '../../upstream/http/errors.ts'
import { OSV_ARCHIVE } from '../../base/domain/feed-paths.ts'
import type { SyncContext } from '../context.ts'
import type { OsvPlan } from './diff.ts'
import type { ListedIndex } from './fetch-index.ts'
import { type FetchResult, fetchSingles } from './fetch-records.ts'
import type { OsvIndex } from './index-parser.ts'
import { ingestArchive } from './ingest.ts'
import { type ArchiveValidators, type UpstreamArchive, downloadArchive, openRemoteArchive } from './upstream-archive.ts'

/** Records that wait in the staging table; `store`: all that could be fetched are stored already. */
export interface StagedRecords {
  place: 'store' | 'staging'
  result: FetchResult
  /** Validators of the archive that was compared with the store; null: none was. */
  compared: ArchiveValidators | null
}

/**
 * The records that a run fetched, by the place where they wait for the commit. Those of a downloaded archive are
 * written while it is read, within the transaction.
 */
export type FetchedRecords = StagedRecords | { place: 'archive'; archive: UpstreamArchive; compared: ArchiveValidators }

/** Fetches the records of the difference; a reconcile fetches those whose contents differ as well. */
export async function fetchChanges(
  context: SyncContext,
  { index }: ListedIndex,
  plan: OsvPlan,
): Promise<FetchedRecords> {
  const { staging } = context.store.osv
  staging.clear()
  const strategy = strategyOf(context, index, plan)
  if (strategy === 'nothing') return nothingFetched()
  if (strategy === 'ranges') {
    const fetched = await fetchByRanges(context, index, plan)
    if (fetched !== null) return fetched
    staging.clear()
  }
  const isWhole = context.full || index.unstamped.size > 0
  const wanted = isWhole ? index.ids.size : plan.added.length + plan.changed.length
  const archive = strategy === 'singles' ? null : await downloadUnlessFew(context, wanted)
  if (archive !== null) return { place: 'archive', archive, compared: archive.validators }
  const ids = isWhole ? [...index.ids.ids()] : [...plan.added, ...plan.changed]
  const result = await fetchSingles(context, index, ids)
  const isStored = strategy === 'singles' && staging.isEmpty()
  return { place: isStored ? 'store' : 'staging', result, compared: null }
}

type Strategy = 'nothing' | 'singles' | 'archive' | 'ranges'

function strategyOf({ kind, full, config }: SyncContext, { scope, unstamped }: OsvIndex, plan: OsvPlan): Strategy {
  // Few records of many may be in scope: then the archive is not worth its bytes, and an empty store may be complete.
  if (full || (plan.stored === 0 && scope === null)) return 'archive'
  if (kind === 'reconcile' || unstamped.size > 0) return 'ranges'
  if (plan.isEmpty) return 'nothing'
  return plan.added.length + plan.changed.length > config.osv.archiveThreshold ? 'archive' : 'singles'
}

function nothingFetched(): StagedRecords {
  return { place: 'store', result: { missing: new Map(), suspectIds: [] }, compared: null }
}

/**
 * Compares contents by the archive's directory and stages only the members that differ. Returns null when the archive
 * cannot be read in ranges.
 */
async function fetchByRanges(context: SyncContext, index: OsvIndex, plan: OsvPlan): Promise<StagedRecords | null> {
  const { facts, store } = context
  const known = plan.isEmpty ? store.feeds.readUpstreamState(OSV_ARCHIVE) : null
  try {
    const archive = await openRemoteArchive(context, known)
    if (archive === 'unchanged') {
      facts['silentChanges'] = 0
      return nothingFetched()
    }
    if (archive === 'unavailable') throw new MirrorError('archive', 'upstream does not honour ranges of the archive')
    const { agrees, result } = await ingestArchive(context, index, archive, { kind: 'staging' })
    const place = plan.isEmpty && agrees ? 'store' : 'staging'
    return { place, result, compared: archive.validators }
  } catch (error) {
    if (!(error instanceof MirrorError)) throw error
    const isWithout = error.code === 'upstream_not_found' && index.unstamped.size > 0
    if (error.code !== 'archive' && !isWithout) throw error
    facts['rangesFailed'] = error.message
    return null
  }
}

/**
 * Downloads the whole archive. Returns null when that fails and the wanted records may be fetched one by one, up to
 * `osv.maxSingleFetches`. Not for a reconcile: without the archive it has compared nothing and must not report that it
 * did.
 */
async function downloadUnlessFew(context: SyncContext, wanted: number): Promise<UpstreamArchive | null> {
  const { session, kind, config, facts } = context
  try {
    return await downloadArchive(context)
  } catch (error) {
    session.signal.throwIfAborted()
    const isServiceError = error instanceof MirrorError && error.code !== 'storage' && !isKeyRefused(error)
    const allowed = wanted <= config.osv.maxSingleFetches
    if (!isServiceError || kind === 'reconcile' || !allowed) throw error
    facts['archiveFailed'] = error.message
    return null
  }
}
