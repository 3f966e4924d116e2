import { isUtf8 } from 'node:buffer'
import { runPool } from '../../base/pacing.ts'
import { counted } from '../../base/text.ts'
import { readHttpDate } from '../../base/time.ts'
import { MirrorError, messageOf } from '../../base/errors.ts'
import { OSV_ARCHIVE } from '../../base/domain/feed-paths.ts'
import type { RunFacts } from '../../store/runs/runs.ts'
import type { Meta, Validators } from '../../upstream/http/response.ts'
import { fetchRecord } from '../../upstream/osv.ts'
import { isKeyRefused, retryAfterMs } from '../../upstream/http/errors.ts'
import type { SyncContext } from '../context.ts'
import { prepareReading } from './archive/reading.ts'
import type { OsvPlan } from './diff.ts'
import type { OsvIndex } from './index-parser.ts'
import { type Comparison, type IngestTarget, ingestArchive } from './ingest.ts'
import { compareStamps, fromAnswer, identify } from './record.ts'
import { type UpstreamArchive, type Way, openUpstream, singleFetchesOf } from './upstream-archive.ts'

/** Result of fetching records. */
interface FetchResult {
  /** Ids that are listed but could not be fetched → reason. */
  missing: Map<string, string>
  /**
   * Ids whose record is older than listed and differs from the stored one, perhaps because of a cache. They are
   * fetched, and requested again by the next run; the same answer then counts as final.
   */
  suspectIds: string[]
}

/** Records that wait in the staging table; `store`: all that could be fetched are stored already. */
export interface StagedRecords {
  place: 'store' | 'staging'
  result: FetchResult
  /** Validators of the archive that was compared with the store; null: none was. */
  compared: Validators | null
}

/**
 * The records that a run fetched, by the place where they wait for the commit. Those of a downloaded archive are
 * written while it is read (`readInto`), within the transaction; `dispose` releases it if that did not happen.
 */
export type FetchedRecords =
  | StagedRecords
  | {
      place: 'archive'
      readInto: (target: IngestTarget) => Promise<FetchResult>
      compared: Validators
      dispose: () => Promise<void>
    }

/** Fetches the records of the difference; a reconcile fetches those whose contents differ as well. */
export async function fetchChanges(context: SyncContext, index: OsvIndex, plan: OsvPlan): Promise<FetchedRecords> {
  const { store, facts } = context
  store.osv.staging.clear()
  for (let way = strategyOf(context, index, plan); way !== 'nothing'; way = 'archive') {
    try {
      return await fetchBy(way, context, index, plan)
    } catch (error) {
      if (way !== 'ranges' || !(error instanceof MirrorError)) throw error
      const isWithout = error.code === 'upstream_not_found' && index.unstamped.size > 0
      if (error.code !== 'archive' && !isWithout) throw error
      facts['rangesFailed'] = error.message
      store.osv.staging.clear()
    }
  }
  return nothingFetched()
}

function strategyOf(
  { kind, full, config }: SyncContext,
  { scope, unstamped }: OsvIndex,
  plan: OsvPlan,
): Way | 'nothing' {
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
 * Fetches the records one by one, or from the archive: a downloaded one is written within the transaction; of one that is
 * read in ranges, the members that differ by its directory are staged here. Throws `archive` when it cannot be read so.
 */
async function fetchBy(way: Way, context: SyncContext, index: OsvIndex, plan: OsvPlan): Promise<FetchedRecords> {
  const { store, facts, full } = context
  const isWhole = full || index.unstamped.size > 0
  const wanted = isWhole ? index.ids.size : plan.added.length + plan.changed.length
  const known = plan.isEmpty ? store.feeds.readUpstreamState(OSV_ARCHIVE) : null
  const archive = await openUpstream(context, way, wanted, known)
  if (archive === 'unchanged') {
    facts['silentChanges'] = 0
    return nothingFetched()
  }
  if (archive !== null) {
    const { path, validators, dispose } = archive
    const readInto = (target: IngestTarget) => takeArchive(context, index, archive, target)
    if (path !== null) return { place: 'archive', readInto, compared: validators, dispose }
    const result = await readInto({ kind: 'staging' })
    return { place: plan.isEmpty && result.agrees ? 'store' : 'staging', result, compared: validators }
  }
  const ids = isWhole ? [...index.ids.ids()] : [...plan.added, ...plan.changed]
  const result = await fetchSingles(context, index, ids)
  const isStored = way === 'singles' && store.osv.staging.isEmpty()
  return { place: isStored ? 'store' : 'staging', result, compared: null }
}

/**
 * Writes the members of an archive that differ to a target, releases the archive, and fetches into the staging table the
 * listed records that it contradicts. `agrees`: it has no record that differs, and lacks none.
 */
async function takeArchive(
  context: SyncContext,
  index: OsvIndex,
  archive: UpstreamArchive,
  target: IngestTarget,
): Promise<FetchResult & { agrees: boolean }> {
  const { facts, store } = context
  const reading = prepareReading(context, archive, target.kind === 'empty store')
  const compared = await ingestArchive(context, index, archive, reading, target)
  Object.assign(facts, comparisonFacts(compared))
  await archive.dispose() // a downloaded archive is large, and publishing needs the room
  const { unresolved, written, silent } = compared
  const most = singleFetchesOf(context)
  const contradicted = [...unresolved.keys()]
  const result = await fetchSingles(context, index, contradicted.slice(0, most))
  if (result.suspectIds.length > 0) facts['olderThanListed'] = result.suspectIds.length
  for (const id of contradicted.slice(most))
    result.missing.set(id, `not requested yet: the run fetched ${most} singly, and the next run goes on`)
  const { isStaged } = store.osv.staging
  const isSilent = (id: string): boolean => isStaged(id) && store.osv.readEntry(id)?.modified === index.ids.stamp(id)
  facts['silentChanges'] = silent + contradicted.filter(isSilent).length
  return { ...result, agrees: written === 0 && unresolved.size === 0 }
}

/** Returns what a run reports of an archive. */
function comparisonFacts({ newer, behind, unlisted, unresolved }: Comparison): RunFacts {
  const facts: RunFacts = { contradicted: unresolved.size }
  if (newer > 0) facts['newerThanListed'] = newer
  if (behind > 0) facts['archiveBehind'] = behind
  if (unlisted > 0) facts['unlistedMembers'] = unlisted
  facts['contradictions'] = [...unresolved].slice(0, 5).map(([id, why]) => `${id}: ${why}`)
  return facts
}

/** Consecutive failures (after retries) after which upstream is considered down. */
const MAX_CONSECUTIVE_FAILURES = 10

/**
 * Fetches records one by one, with bounded concurrency, into the staging table. A record is staged only when it is
 * JSON with the requested id. Throws when upstream as a whole fails.
 */
async function fetchSingles(context: SyncContext, index: OsvIndex, ids: readonly string[]): Promise<FetchResult> {
  const result: FetchResult = { missing: new Map(), suspectIds: [] }
  const { session, config, progress } = context
  let done = 0
  let notFound = 0
  let failures = 0 // since the last fetched record
  const fetchNext = async (id: string): Promise<void> => {
    try {
      await fetchOne(context, index, id, result)
      failures = 0
    } catch (error) {
      session.signal.throwIfAborted()
      if (!(error instanceof MirrorError)) throw error // an internal or storage error
      const isNotFound = error.code === 'upstream_not_found'
      result.missing.set(id, isNotFound ? 'upstream lists it but answers 404' : messageOf(error))
      if (isNotFound) notFound++
      else failures++
      if (isFatalForAll(error) || failures >= MAX_CONSECUTIVE_FAILURES) throw error
    }
    progress({ source: 'osv', phase: 'records', unit: 'records', done: ++done, total: ids.length })
  }
  try {
    await runPool(ids, config.upstream.concurrency, fetchNext)
  } catch (error) {
    if (!(error instanceof MirrorError)) throw error
    const message = `stopped after ${counted(result.missing.size - notFound, 'record')} could not be fetched, the last one: ${error.message}`
    throw new MirrorError(error.code, message, { cause: error })
  }
  return result
}

/** Returns whether an error affects every record: refused credentials, or a Retry-After after all retries. */
function isFatalForAll(error: MirrorError): boolean {
  return isKeyRefused(error) || retryAfterMs(error) !== null
}

async function fetchOne(
  { session, config, store, facts }: SyncContext,
  index: OsvIndex,
  id: string,
  result: FetchResult,
): Promise<void> {
  const { body, meta } = await fetchRecord(session, id, config.upstream.maxRecordBytes)
  // A single record has no checksum, unlike an archive member: bytes that are not UTF-8 were damaged in transfer.
  const identity = isUtf8(body) ? identify(body, id) : 'not UTF-8'
  if (typeof identity === 'string') {
    result.missing.set(id, identity)
    return
  }
  const isUnstamped = index.unstamped.has(id)
  const listed = isUnstamped ? (identity.modified ?? '') : index.ids.stamp(id)
  const order = compareStamps(identity.modified, listed)
  const record = fromAnswer(id, listed, body, publishedAt(meta))
  const stored = store.osv.readEntry(id)
  if (stored?.modified === listed && stored.crc32 === record.crc32 && stored.size === record.size) return
  if (index.scope?.admits(id, identity.record) === false) return
  if (order === 'older') result.suspectIds.push(id)
  if (isUnstamped && stored !== null) facts['silentChanges'] = Number(facts['silentChanges'] ?? 0) + 1
  store.osv.staging.stage(record)
}

/**
 * Returns upstream's date of the bytes, unix milliseconds, comparable with an archive's; the date of the response if
 * there is none.
 */
function publishedAt({ lastModified, date }: Meta): number {
  const published = readHttpDate(lastModified)
  return published === null ? date : Math.min(published, date)
}
