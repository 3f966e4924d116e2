import { isUtf8 } from 'node:buffer'
import { MirrorError, messageOf } from '../../core/errors.ts'
import type { Meta } from '../../upstream/http/response.ts'
import { fetchRecord } from '../../upstream/osv.ts'
import { retryAfterMs } from '../../upstream/http/errors.ts'
import type { SyncContext } from '../context.ts'
import { type OsvIndex, listedStamp } from './index-parser.ts'
import { compareStamps, fromAnswer, identify } from './record.ts'

/** What became of the records that were fetched one by one. */
export interface SinglesResult {
  /** Ids that upstream lists and answers 404 for. */
  missing: string[]
  /** Ids that could not be had, each with the reason. */
  failed: Map<string, string>
  newer: number
  /**
   * Older than listed even when asked for singly, and not what is held: perhaps upstream's own habit, perhaps a cache
   * on the way. They are taken, and asked for once more by the next run; the same answer again settles it.
   */
  older: string[]
}

/** So many ids in a row that cannot be had, after retries, mean that upstream is down, not that these ids are odd. */
const HOPELESS = 10

/**
 * Fetches records one by one, a bounded number at a time, into the staging table. A record is staged only when
 * it is JSON and carries the id asked for. Throws when upstream as a whole is in trouble.
 */
export async function fetchSingles(
  context: SyncContext,
  index: OsvIndex,
  ids: readonly string[],
): Promise<SinglesResult> {
  const result: SinglesResult = { missing: [], failed: new Map(), newer: 0, older: [] }
  const { concurrency } = context.config.upstream
  let next = 0
  let done = 0
  let failures = 0 // since the last record that could be had
  let hopeless = null as Error | null // set by the workers, which the compiler does not follow
  const worker = async (): Promise<void> => {
    while (next < ids.length && hopeless === null) {
      const id = ids[next++] ?? ''
      try {
        await fetchOne(context, index, id, result)
        failures = 0
      } catch (error) {
        context.session.signal.throwIfAborted()
        if (!(error instanceof MirrorError)) {
          hopeless = toError(error) // a fault of ours or of the disk: the others must not go on behind the run's back
          return
        }
        if (error.code === 'upstream_not_found') result.missing.push(id)
        else {
          result.failed.set(id, messageOf(error))
          failures++
        }
        if (isHopeless(error) || failures >= HOPELESS) hopeless = error
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
  if (hopeless instanceof MirrorError) {
    const message = `gave up after ${result.failed.size} records could not be had, the last: ${hopeless.message}`
    throw new MirrorError(hopeless.code, message, { cause: hopeless })
  }
  if (hopeless !== null) throw hopeless
  return result
}

function toError(error: unknown): Error {
  return error instanceof Error ? error : new Error(messageOf(error), { cause: error })
}

/** Whoever refuses our credentials, or still asks to be left alone after all retries, does so for every record. */
function isHopeless(error: MirrorError): boolean {
  return error.code === 'upstream_auth' || retryAfterMs(error) !== null
}

async function fetchOne(
  { session, config, store }: SyncContext,
  index: OsvIndex,
  id: string,
  result: SinglesResult,
): Promise<void> {
  const { body, meta } = await fetchRecord(session, id, config.upstream.maxRecordBytes)
  // No checksum vouches for a single record, as it does in an archive: bytes that are no text were damaged on the way.
  const identity = isUtf8(body) ? identify(body, id) : 'not UTF-8'
  if (typeof identity === 'string') {
    result.failed.set(id, identity)
    return
  }
  const listed = listedStamp(index, id)
  const order = compareStamps(identity.modified, listed)
  if (order === 'newer') result.newer++
  const record = fromAnswer(id, listed, body, publishedAt(meta))
  const held = store.readEntry(id)
  if (held?.modified === listed && held.crc32 === record.crc32 && held.size === record.size) return
  if (order === 'older') result.older.push(id)
  store.staging.stage(record)
}

/** Upstream's date of the bytes themselves, to be compared with an archive's; when they were asked for, if unknown. */
function publishedAt({ lastModified, date }: Meta): number {
  const published = Date.parse(lastModified ?? '')
  return Number.isNaN(published) ? date : Math.min(published, date)
}
