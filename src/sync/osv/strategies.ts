import { MirrorError } from '../../core/errors.ts'
import { OSV_ARCHIVE } from '../../upstream/osv.ts'
import type { SyncContext, SyncResult } from '../context.ts'
import { type UpstreamArchive, downloadArchive, openRemoteArchive } from './upstream-archive.ts'
import { type FetchResult, commit, confirm, isWhole, outcomeOf } from './commit.ts'
import { type IngestResult, ingestArchive } from './ingest.ts'
import { type OsvPlan, isEmpty } from './diff.ts'
import { type ListedIndex, proveStored } from './publish.ts'
import { recordChanged } from './record.ts'
import { type SinglesResult, fetchSingles } from './fetch-records.ts'

/** The short route: each record by itself. */
export async function viaSingles(
  context: SyncContext,
  listed: ListedIndex,
  plan: OsvPlan,
): Promise<SyncResult> {
  const singles = await fetchSingles(context, listed.index, [...plan.added, ...plan.changed])
  const settled = settledBy([], singles)
  const { store } = context
  const whole = store.readSnapshot('osv')?.whole === true
  if (
    listed.held &&
    plan.removed.length === 0 &&
    store.staging.isEmpty() &&
    whole === isWhole(listed, settled.lacking)
  ) {
    // As at the last run: what was lacking still is, what was in doubt is not any more. No archive to build anew.
    await proveStored(context)
    if (store.listSuspectIds().length > 0) {
      await store.exclusive(() => store.replaceSuspectIds(settled.lacking.keys()))
    }
    return outcomeOf(context, listed, plan, settled.lacking)
  }
  return commit(context, listed, plan, () => Promise.resolve(settled))
}

/** The long route: the whole archive, then singly what it does not settle. */
export async function viaWholeArchive(
  context: SyncContext,
  listed: ListedIndex,
  plan: OsvPlan,
): Promise<SyncResult> {
  let archive: UpstreamArchive
  try {
    archive = await downloadArchive(context)
  } catch (error) {
    return withoutArchive(context, listed, plan, error)
  }
  try {
    const now = context.now()
    const empty = plan.held === 0
    return await commit(context, listed, plan, async () => {
      const { store } = context
      const result = await ingestArchive(context, listed.index, archive.reader, {
        asOf: archive.asOf,
        empty,
        put: (record, own) => {
          const changed = recordChanged(archive.asOf ?? now, now, [record.modified, own])
          if (empty) store.insertRecord(record, changed)
          else store.updateRecord(record, changed)
        },
      })
      await archive.dispose() // its directory is large, and the publication needs the memory
      const settled = await settle(context, listed, result)
      rememberArchive(context, archive, settled)
      return settled
    })
  } finally {
    await archive.dispose()
  }
}

/**
 * A service whose archive cannot be had is still mirrored, record by record, if that is bearable. A reconcile is
 * not: without the archive it has compared nothing, and must not look as if it had.
 */
async function withoutArchive(
  context: SyncContext,
  listed: ListedIndex,
  plan: OsvPlan,
  error: unknown,
): Promise<SyncResult> {
  context.session.signal.throwIfAborted()
  const ids = context.full ? [...listed.index.ids.ids()] : [...plan.added, ...plan.changed]
  const named =
    error instanceof MirrorError && error.code !== 'storage' && error.code !== 'upstream_auth'
  if (!named || context.kind === 'reconcile' || ids.length > context.config.osv.maxSingleFetches)
    throw error
  context.facts['archiveFailed'] = error.message
  const singles = await fetchSingles(context, listed.index, ids)
  return commit(context, listed, plan, () => Promise.resolve(settledBy([], singles)))
}

/** Reconcile: compare content by the archive's directory, fetch only the members that differ. */
export async function viaRanges(
  context: SyncContext,
  listed: ListedIndex,
  plan: OsvPlan,
): Promise<SyncResult> {
  const before = context.session.cost.bytes
  const state = context.store.readUpstreamState(OSV_ARCHIVE)
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
        put: (record) => context.store.staging.stage(record),
      })
      context.facts['savedBytes'] = archive.reader.size - (context.session.cost.bytes - before)
      const settled = await settle(context, listed, result)
      if (
        isEmpty(plan) &&
        settled.lacking.size === 0 &&
        result.written === 0 &&
        result.unresolved.size === 0
      ) {
        await context.store.exclusive(() => rememberArchive(context, archive, settled))
        return await confirm(context, listed)
      }
      return await commit(context, listed, plan, () => {
        rememberArchive(context, archive, settled)
        return Promise.resolve(settled)
      })
    }
    context.facts['rangesFailed'] = 'upstream does not honour ranges of the archive'
  } catch (error) {
    if (!(error instanceof MirrorError) || error.code !== 'archive') throw error
    context.facts['rangesFailed'] = error.message
  }
  context.store.staging.clear()
  return viaWholeArchive(context, listed, plan)
}

/** An archive is done with only when all that it told of has been had: else the next reconcile reads it again. */
function rememberArchive(
  { store }: SyncContext,
  { etag, lastModified }: UpstreamArchive,
  { lacking }: FetchResult,
): void {
  if (lacking.size > 0) return
  const known = store.readUpstreamState(OSV_ARCHIVE)
  if (known?.etag === etag && known.lastModified === lastModified) return
  store.replaceUpstreamState(OSV_ARCHIVE, { etag, lastModified, body: null })
}

/** Asks singly for what the archive contradicts, up to a bound; the rest waits for the next run. */
async function settle(
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
  return settledBy(ids.slice(asked.length), singles)
}

function settledBy(unasked: readonly string[], singles: SinglesResult): FetchResult {
  const lacking = new Map(singles.failed)
  for (const id of singles.missing) lacking.set(id, 'upstream lists it but answers 404')
  for (const id of unasked) lacking.set(id, 'not asked for yet (osv.maxSingleFetches)')
  return { lacking, doubted: singles.older }
}
