import { isUtf8 } from 'node:buffer'
import { counted } from '../../base/text.ts'
import { readHttpDate } from '../../base/time.ts'
import { MirrorError, messageOf } from '../../base/errors.ts'
import type { Meta } from '../../upstream/http/response.ts'
import { fetchRecord } from '../../upstream/osv.ts'
import { isKeyRefused, retryAfterMs } from '../../upstream/http/errors.ts'
import type { SyncContext } from '../context.ts'
import type { OsvIndex } from './index-parser.ts'
import { compareStamps, fromAnswer, identify } from './record.ts'
import { isLeftOut } from './scope/scope.ts'

/** Result of fetching records. */
export interface FetchResult {
  /** Ids that are listed but could not be fetched → reason. */
  missing: Map<string, string>
  /**
   * Ids whose record is older than listed and differs from the stored one, perhaps because of a cache. They are
   * fetched, and requested again by the next run; the same answer then counts as final.
   */
  suspectIds: string[]
}

/** Consecutive failures (after retries) after which upstream is considered down. */
const MAX_CONSECUTIVE_FAILURES = 10

/**
 * Fetches records one by one, with bounded concurrency, into the staging table. A record is staged only when it is
 * JSON with the requested id. Throws when upstream as a whole fails.
 */
export async function fetchSingles(
  context: SyncContext,
  index: OsvIndex,
  ids: readonly string[],
): Promise<FetchResult> {
  const result: FetchResult = { missing: new Map(), suspectIds: [] }
  const { concurrency } = context.config.upstream
  let next = 0
  let done = 0
  let notFound = 0
  let failures = 0 // since the last fetched record
  let fatal = null as Error | null // set by the workers, which the compiler does not track
  const worker = async (): Promise<void> => {
    while (next < ids.length && fatal === null) {
      const id = ids[next++] ?? ''
      try {
        await fetchOne(context, index, id, result)
        failures = 0
      } catch (error) {
        context.session.signal.throwIfAborted()
        if (!(error instanceof MirrorError)) {
          fatal = toError(error) // an internal or storage error: the other workers must stop too
          return
        }
        if (error.code === 'upstream_not_found') {
          result.missing.set(id, 'upstream lists it but answers 404')
          notFound++
        } else {
          result.missing.set(id, messageOf(error))
          failures++
        }
        if (isFatalForAll(error) || failures >= MAX_CONSECUTIVE_FAILURES) fatal = error
      }
      context.progress({
        source: 'osv',
        phase: 'records',
        unit: 'records',
        done: ++done,
        total: ids.length,
      })
    }
  }
  await Promise.all(Array.from({ length: Math.min(concurrency, ids.length) }, worker))
  if (fatal instanceof MirrorError) {
    const message = `stopped after ${counted(result.missing.size - notFound, 'record')} could not be fetched, the last one: ${fatal.message}`
    throw new MirrorError(fatal.code, message, { cause: fatal })
  }
  if (fatal !== null) throw fatal
  return result
}

/**
 * Fetches single records that an archive contradicts, up to `osv.maxSingleFetches`; the rest is left to the next run.
 */
export async function fetchContradicted(
  context: SyncContext,
  index: OsvIndex,
  ids: readonly string[],
): Promise<FetchResult> {
  const most = context.config.osv.maxSingleFetches
  const result = await fetchSingles(context, index, ids.slice(0, most))
  if (result.suspectIds.length > 0) context.facts['olderThanListed'] = result.suspectIds.length
  for (const id of ids.slice(most)) result.missing.set(id, 'not requested yet: the run reached osv.maxSingleFetches')
  return result
}

function toError(error: unknown): Error {
  return error instanceof Error ? error : new Error(messageOf(error), { cause: error })
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
  if (isLeftOut(index, id, identity.record)) return
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
