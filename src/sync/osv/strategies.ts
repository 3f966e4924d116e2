import { MirrorError } from '../../core/errors.ts'
import { OSV_ARCHIVE } from '../../domain/feed-paths.ts'
import type { SyncContext, SyncResult } from '../context.ts'
import { type UpstreamArchive, downloadArchive, openRemoteArchive } from './upstream-archive.ts'
import { type FetchResult, commit, confirm, isWhole, runOutcome } from './commit.ts'
import { type IngestResult, ingestArchive } from './ingest.ts'
import { type OsvPlan, isEmpty } from './diff.ts'
import { type ListedIndex, proveStored } from './publish.ts'
import { recordChanged } from './record.ts'
import { type SinglesResult, fetchSingles } from './fetch-records.ts'

/** Fetches each added or changed record by itself. */
export async function syncSingles(
  context: SyncContext,
  listed: ListedIndex,
  plan: OsvPlan,
): Promise<SyncResult> {
  const singles = await fetchSingles(context, listed.index, [...plan.added, ...plan.changed])
  const fetched = resultOf([], singles)
  const { store } = context
  const whole = store.snapshots.readSnapshot('osv')?.whole === true
  if (
    listed.stored &&
    plan.removed.length === 0 &&
    store.osv.staging.isEmpty() &&
    whole === isWhole(listed, fetched.missing)
  ) {
    // Unchanged since the last run: missing records are still missing, suspect ones are confirmed. The archive needs
    // no rebuild.
    await proveStored(context)
    if (store.osv.listSuspectIds().length > 0) {
      await store.exclusive(() => store.osv.replaceSuspectIds(fetched.missing.keys()))
    }
    return runOutcome(context, listed, plan, fetched.missing)
  }
  return commit(context, listed, plan, () => Promise.resolve(fetched))
}

/** Downloads the whole archive, then fetches single records that it contradicts. */
export async function syncFromArchive(
  context: SyncContext,
  listed: ListedIndex,
  plan: OsvPlan,
): Promise<SyncResult> {
  let archive: UpstreamArchive
  try {
    archive = await downloadArchive(context)
  } catch (error) {
    return syncWithoutArchive(context, listed, plan, error)
  }
  try {
    const now = context.now()
    const empty = plan.stored === 0
    return await commit(context, listed, plan, async () => {
      const { store } = context
      const result = await ingestArchive(context, listed.index, archive.reader, {
        asOf: archive.asOf,
        empty,
        put: (record, own) => {
          const changed = recordChanged(archive.asOf ?? now, now, [record.modified, own])
          if (empty) store.osv.insertRecord(record, changed)
          else store.osv.updateRecord(record, changed)
        },
      })
      await archive.dispose() // its directory is large, and publishing needs the memory
      const fetched = await fetchContradicted(context, listed, result)
      rememberArchive(context, archive, fetched)
      return fetched
    })
  } finally {
    await archive.dispose()
  }
}

/**
 * Fetches records one by one when the archive fails, up to `osv.maxSingleFetches`. Not for a reconcile: without the
 * archive it has compared nothing and must not report that it did.
 */
async function syncWithoutArchive(
  context: SyncContext,
  listed: ListedIndex,
  plan: OsvPlan,
  error: unknown,
): Promise<SyncResult> {
  context.session.signal.throwIfAborted()
  const ids = context.full ? [...listed.index.ids.ids()] : [...plan.added, ...plan.changed]
  const isServiceError =
    error instanceof MirrorError && error.code !== 'storage' && error.code !== 'upstream_auth'
  if (
    !isServiceError ||
    context.kind === 'reconcile' ||
    ids.length > context.config.osv.maxSingleFetches
  )
    throw error
  context.facts['archiveFailed'] = error.message
  const singles = await fetchSingles(context, listed.index, ids)
  return commit(context, listed, plan, () => Promise.resolve(resultOf([], singles)))
}

/** Reconciles: compares contents by the archive's directory and fetches only the members that differ. */
export async function syncFromRanges(
  context: SyncContext,
  listed: ListedIndex,
  plan: OsvPlan,
): Promise<SyncResult> {
  const before = context.session.cost.bytes
  const state = context.store.feeds.readUpstreamState(OSV_ARCHIVE)
  try {
    const archive = await openRemoteArchive(context, isEmpty(plan) ? (state?.etag ?? null) : null)
    if (archive === 'unchanged') {
      context.facts['silentChanges'] = 0
      return await confirm(context, listed)
    }
    if (archive !== 'unavailable') {
      const result = await ingestArchive(context, listed.index, archive.reader, {
        asOf: archive.asOf,
        empty: false,
        put: (record) => context.store.osv.staging.stage(record),
      })
      context.facts['savedBytes'] = archive.reader.size - (context.session.cost.bytes - before)
      const fetched = await fetchContradicted(context, listed, result)
      if (
        isEmpty(plan) &&
        fetched.missing.size === 0 &&
        result.written === 0 &&
        result.unresolved.size === 0
      ) {
        await context.store.exclusive(() => rememberArchive(context, archive, fetched))
        return await confirm(context, listed)
      }
      return await commit(context, listed, plan, () => {
        rememberArchive(context, archive, fetched)
        return Promise.resolve(fetched)
      })
    }
    context.facts['rangesFailed'] = 'upstream does not honour ranges of the archive'
  } catch (error) {
    if (!(error instanceof MirrorError) || error.code !== 'archive') throw error
    context.facts['rangesFailed'] = error.message
  }
  context.store.osv.staging.clear()
  return syncFromArchive(context, listed, plan)
}

/**
 * Stores the archive's validators, but only when every record that it announced was fetched; otherwise the next
 * reconcile reads it again.
 */
function rememberArchive(
  { store }: SyncContext,
  { etag, lastModified }: UpstreamArchive,
  { missing }: FetchResult,
): void {
  if (missing.size > 0) return
  const known = store.feeds.readUpstreamState(OSV_ARCHIVE)
  if (known?.etag === etag && known.lastModified === lastModified) return
  store.feeds.replaceUpstreamState(OSV_ARCHIVE, { etag, lastModified, body: null })
}

/**
 * Fetches single records that the archive contradicts, up to `osv.maxSingleFetches`; the rest is left to the next
 * run.
 */
async function fetchContradicted(
  context: SyncContext,
  listed: ListedIndex,
  result: IngestResult,
): Promise<FetchResult> {
  const { facts, config } = context
  const ids = [...result.unresolved.keys()]
  const asked = ids.slice(0, config.osv.maxSingleFetches)
  facts['silentChanges'] = result.silent
  facts['contradicted'] = ids.length
  if (result.newer > 0) facts['newerThanListed'] = result.newer
  if (result.behind > 0) facts['archiveBehind'] = result.behind
  if (result.unlisted > 0) facts['unlistedMembers'] = result.unlisted
  facts['contradictions'] = [...result.unresolved].slice(0, 5).map(([id, why]) => `${id}: ${why}`)
  const singles = await fetchSingles(context, listed.index, asked)
  if (singles.older.length > 0) facts['olderThanListed'] = singles.older.length
  return resultOf(ids.slice(asked.length), singles)
}

function resultOf(skipped: readonly string[], singles: SinglesResult): FetchResult {
  const missing = new Map(singles.failed)
  for (const id of singles.notFound) missing.set(id, 'upstream lists it but answers 404')
  for (const id of skipped)
    missing.set(id, 'not requested yet: the run reached osv.maxSingleFetches')
  return { missing, suspectIds: singles.older }
}
