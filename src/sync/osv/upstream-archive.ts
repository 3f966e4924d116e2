import { rm, statfs } from 'node:fs/promises'
import { join } from 'node:path'
import { MirrorError } from '../../base/errors.ts'
import { readHttpDate } from '../../base/time.ts'
import type { Meta, Validators } from '../../upstream/http/response.ts'
import { ARCHIVE_TIMEOUT_MS, downloadFile } from '../../upstream/http/download.ts'
import { OSV_ARCHIVE } from '../../base/domain/feed-paths.ts'
import { isKeyRefused } from '../../upstream/http/errors.ts'
import { fetchArchiveRange } from '../../upstream/osv.ts'
import { END_SPAN } from '../../archive/zip/directory.ts'
import { type ArchiveReader, openArchive, openSource } from '../../archive/zip/reader.ts'
import type { OsvReader } from '../../store/osv/reads.ts'
import type { SyncContext } from '../context.ts'

/** An archive ready to be read, downloaded or remote. */
export interface UpstreamArchive {
  reader: ArchiveReader
  /** The file of a downloaded archive; null: it is remote. */
  path: string | null
  /** Upstream's date of the archive (Last-Modified), unix milliseconds; null: unknown. */
  asOf: number | null
  validators: Validators
  /** Closes a downloaded archive, whose directory takes memory; it cannot be read with `reader` any more. */
  close: () => Promise<void>
  /** Releases the archive after reading: a downloaded file is removed; a remote one reports the bytes that it saved. */
  dispose: () => Promise<void>
}

const CENTRAL_HEADER = 46
/** Maximum bytes between two wanted members that are fetched along instead of sending another request. */
const REMOTE_GAP = 1024

/** How records are fetched: one by one, or from the archive, which is downloaded or read in ranges. */
export type Way = 'singles' | 'archive' | 'ranges'

/**
 * Opens upstream's archive; null: the `wanted` records are to be fetched one by one. `unchanged` when ranges are to be read
 * of the archive that was compared last, which is `known`. Throws `archive` when it cannot be read in ranges.
 */
export async function openUpstream(
  context: SyncContext,
  way: Way,
  wanted: number,
  known: Validators | null,
): Promise<UpstreamArchive | 'unchanged' | null> {
  if (way === 'singles') return null
  if (way === 'archive') return downloadUnlessFew(context, wanted)
  const archive = await openRemoteArchive(context, known)
  if (archive === 'unavailable') throw new MirrorError('archive', 'upstream does not honour ranges of the archive')
  return archive
}

/** Single records that one run fetches: an archive is kinder to the service than more of them. The rest waits for the next run. */
const MAX_SINGLE_FETCHES = 5000

/** Returns how many single records a run may fetch to settle what an archive contradicts, or in its place. */
export function singleFetchesOf({ limits }: Pick<SyncContext, 'limits'>): number {
  return limits.singleFetches ?? MAX_SINGLE_FETCHES
}

/**
 * Downloads the whole archive. Returns null when that fails and the wanted records may be fetched one by one, up to
 * `MAX_SINGLE_FETCHES`. Not for a reconcile: without the archive it has compared nothing and must not report that it
 * did.
 */
async function downloadUnlessFew(context: SyncContext, wanted: number): Promise<UpstreamArchive | null> {
  const { session, kind, facts } = context
  try {
    return await downloadArchive(context)
  } catch (error) {
    session.signal.throwIfAborted()
    const isServiceError = error instanceof MirrorError && error.code !== 'storage' && !isKeyRefused(error)
    const allowed = wanted <= singleFetchesOf(context)
    if (!isServiceError || kind === 'reconcile' || !allowed) throw error
    facts['archiveFailed'] = error.message
    return null
  }
}

/**
 * Downloads the whole archive (resuming an interrupted download) and opens it. A damaged one is downloaded once more.
 */
async function downloadArchive(context: SyncContext, again = false): Promise<UpstreamArchive> {
  const { config, session, facts, progress } = context
  const target = downloadPath(config.data.dir)
  const meta = await downloadFile(session, OSV_ARCHIVE, {
    target,
    config: config.upstream,
    onProgress: (done, total) => {
      progress({ source: 'osv', phase: 'archive', unit: 'bytes', done, total })
    },
    checkRoom: (bytes) => checkRoom(config.data.dir, bytes),
  })
  const described = describe(meta)
  try {
    const reader = await openArchive(target, { maxMemberBytes: config.upstream.maxRecordBytes })
    facts['archiveBytes'] = reader.size
    const dispose = async (): Promise<void> => {
      await reader.close()
      await dropDownloaded(config.data.dir)
    }
    return { reader, path: target, ...described, close: reader.close, dispose }
  } catch (error) {
    await dropDownloaded(config.data.dir)
    if (again || !(error instanceof MirrorError) || error.code !== 'archive') throw error
    facts['archiveRefetched'] = error.message
    return downloadArchive(context, true)
  }
}

function downloadPath(dataDir: string): string {
  return join(dataDir, 'downloads', 'osv-all.zip')
}

/** Removes a complete download, as a killed process leaves one; an incomplete download stays, to be resumed. */
export function dropDownloaded(dataDir: string): Promise<void> {
  return rm(downloadPath(dataDir), { force: true })
}

/**
 * Throws `storage` unless there is disk space for the archive, the database's growth and the derived archive: about
 * three times the download.
 */
async function checkRoom(dir: string, bytes: number): Promise<void> {
  const { bavail, bsize } = await statfs(dir)
  const free = bavail * bsize
  if (free >= bytes * 3) return
  throw new MirrorError(
    'storage',
    `the data folder ${dir} has ${free} bytes free; an archive download of ${bytes} bytes needs about ` +
      `${bytes * 3}. Free disk space; the next run resumes the download.`,
  )
}

/**
 * Opens upstream's archive remotely: fetches only its central directory by a suffix range, and members as ranges of
 * the same version (If-Range). `unchanged` when it is the archive of the last reconcile; `unavailable` when ranges
 * are not supported or there is no validator for them.
 */
async function openRemoteArchive(
  context: SyncContext,
  known: Validators | null,
): Promise<UpstreamArchive | 'unchanged' | 'unavailable'> {
  const { session, config, facts, store } = context
  const before = session.cost.bytes
  const ends = performance.now() + ARCHIVE_TIMEOUT_MS // one deadline for all ranges
  const left = (): number => Math.max(1, Math.floor(ends - performance.now()))
  const end = { suffix: expectedDirectory(store.osv) }
  const tail = await fetchArchiveRange(session, end, { known }, left())
  if (typeof tail === 'string') return tail
  const { start, total, meta } = tail
  const { etag } = meta
  if (etag === null || etag.startsWith('W/') || total > config.upstream.maxArchiveBytes) return 'unavailable'
  const read = async (position: number, length: number): Promise<Buffer> => {
    const rest = tail.body.subarray(Math.max(0, position - start), Math.max(0, position + length - start))
    if (position >= start) return rest
    const range = { from: position, length: length - rest.length }
    const part = await fetchArchiveRange(session, range, { ifRange: etag }, left())
    if (typeof part === 'string' || part.total !== total) throw new ArchiveMoved()
    return rest.length === 0 ? part.body : Buffer.concat([part.body, rest])
  }
  const limits = { maxMemberBytes: config.upstream.maxRecordBytes }
  const reader = await openSource({ size: total, read }, limits, REMOTE_GAP)
  facts['archiveBytes'] = total
  const dispose = (): Promise<void> => {
    facts['savedBytes'] = total - (session.cost.bytes - before)
    return Promise.resolve()
  }
  return { reader, path: null, ...describe(meta), close: () => Promise.resolve(), dispose }
}

/** The archive changed between two range requests: everything read so far is discarded. */
class ArchiveMoved extends MirrorError {
  constructor() {
    super('archive', 'the archive changed while it was read in ranges')
  }
}

/** Estimates the size of the central directory, bytes, from the stored records. */
function expectedDirectory(stored: Pick<OsvReader, 'countRecords' | 'sumIdBytes'>): number {
  const entries = stored.countRecords()
  return entries * (CENTRAL_HEADER + '.json'.length) + stored.sumIdBytes() + END_SPAN
}

function describe(meta: Meta): Pick<UpstreamArchive, 'asOf' | 'validators'> {
  const { etag, lastModified } = meta
  const date = readHttpDate(lastModified)
  return {
    asOf: date === null ? null : Math.min(date, meta.date), // no archive is newer than its response
    validators: { etag, lastModified },
  }
}
