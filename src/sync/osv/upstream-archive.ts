import { rm, statfs } from 'node:fs/promises'
import { join } from 'node:path'
import { MirrorError } from '../../core/errors.ts'
import type { Meta } from '../../upstream/http/response.ts'
import { downloadFile } from '../../upstream/http/download.ts'
import { type RangeAnswer, OSV_ARCHIVE, fetchArchiveRange } from '../../upstream/osv.ts'
import { parseDirectory } from '../../zip/directory.ts'
import {
  type ArchiveReader,
  type ReaderLimits,
  checkedLocation,
  createArchiveReader,
  openArchive,
} from '../../zip/reader.ts'
import type { SyncContext } from '../context.ts'

/** An archive ready to be read, wherever its bytes lie. */
export interface UpstreamArchive {
  reader: ArchiveReader
  /** Upstream's date of it (Last-Modified), unix milliseconds; null: unknown. */
  asOf: number | null
  etag: string | null
  lastModified: string | null
  /** Removes what was downloaded for it. */
  dispose(): Promise<void>
}

const CENTRAL_HEADER = 46
const SPARE = 1 << 16
/** Bytes between two wanted members that are cheaper to fetch along than to ask twice. */
const REMOTE_GAP = 1024

function limitsOf({ config }: SyncContext): ReaderLimits {
  return { maxMemberBytes: config.upstream.maxRecordBytes }
}

/** Downloads the whole archive (resuming what an earlier run left) and opens it. A damaged one is fetched once more. */
export async function downloadArchive(context: SyncContext): Promise<UpstreamArchive> {
  try {
    return await downloadOnce(context)
  } catch (error) {
    if (!(error instanceof MirrorError) || error.code !== 'archive') throw error
    context.facts['archiveRefetched'] = error.message
    return downloadOnce(context)
  }
}

async function downloadOnce(context: SyncContext): Promise<UpstreamArchive> {
  const { config, session } = context
  const target = downloaded(context)
  const dispose = (): Promise<void> => rm(target, { force: true })
  const meta = await downloadFile(session, OSV_ARCHIVE, {
    target,
    config: config.upstream,
    onProgress: (done, total) => {
      context.progress({ source: 'osv', phase: 'archive', unit: 'bytes', done, total })
    },
    checkRoom: (bytes) => checkRoom(config.data.dir, bytes),
  })
  try {
    const reader = await openArchive(target, limitsOf(context))
    context.facts['archiveBytes'] = reader.size
    return disposable(reader, validators(meta), dispose)
  } catch (error) {
    await dispose()
    throw error
  }
}

/** An archive that lets go of its directory, the largest thing a run holds in memory, as soon as it is disposed of. */
function disposable(
  opened: ArchiveReader & { close(): Promise<void> },
  meta: Omit<UpstreamArchive, 'reader' | 'dispose'>,
  removeFile: () => Promise<void>,
): UpstreamArchive {
  let reader: (ArchiveReader & { close(): Promise<void> }) | null = opened
  return {
    ...meta,
    get reader() {
      if (reader === null) throw new MirrorError('internal', 'the archive was disposed of')
      return reader
    },
    async dispose() {
      await reader?.close()
      reader = null
      await removeFile()
    },
  }
}

function downloaded({ config }: SyncContext): string {
  return join(config.data.dir, 'downloads', 'osv-all.zip')
}

/** Removes what a killed process had downloaded to the end; an unfinished download stays, to be gone on with. */
export function dropDownloaded(context: SyncContext): Promise<void> {
  return rm(downloaded(context), { force: true })
}

/** The archive, the database's growth and the derived archive all need room: about three times the download. */
async function checkRoom(dir: string, bytes: number): Promise<void> {
  const { bavail, bsize } = await statfs(dir)
  const free = bavail * bsize
  if (free >= bytes * 3) return
  throw new MirrorError(
    'storage',
    `the data folder ${dir} has ${free} bytes free; an archive download of ${bytes} bytes needs about ` +
      `${bytes * 3}. Free some space; the next run goes on from here.`,
  )
}

/**
 * Opens upstream's archive where it lies: only its central directory is fetched, by a suffix range, and members
 * as ranges of the same version (If-Range). `unchanged` when it is the one reconciled last; `unavailable` when
 * ranges are not honoured or there is no validator to tie them together.
 */
export async function openRemoteArchive(
  context: SyncContext,
  heldEtag: string | null,
): Promise<UpstreamArchive | 'unchanged' | 'unavailable'> {
  const { session, config } = context
  const ends = performance.now() + config.upstream.archiveTimeoutMs // one deadline for all ranges together
  const left = (): number => Math.max(1, Math.floor(ends - performance.now()))
  const tail = await fetchArchiveRange(
    session,
    { suffix: expectedDirectory(context) },
    { ifNoneMatch: heldEtag },
    left(),
  )
  if (typeof tail === 'string') return tail
  const { etag } = tail.meta
  if (etag === null || etag.startsWith('W/') || tail.total > config.upstream.maxArchiveBytes) {
    return 'unavailable'
  }
  const read = async (position: number, length: number): Promise<Buffer> => {
    if (position >= tail.start)
      return tail.body.subarray(position - tail.start, position - tail.start + length)
    const part = await fetchArchiveRange(
      session,
      { from: position, length },
      { ifRange: etag },
      left(),
    )
    if (typeof part !== 'string' && part.total === tail.total) return part.body
    throw new ArchiveMoved()
  }
  const location = checkedLocation(tail.body, tail.total, limitsOf(context))
  const missing = Math.max(0, tail.start - location.offset)
  const head = missing > 0 ? await read(location.offset, missing) : Buffer.alloc(0)
  const rest = Math.max(0, location.offset - tail.start)
  const bytes = Buffer.concat([head, tail.body.subarray(rest, rest + location.size - missing)])
  return remote(
    context,
    tail,
    createArchiveReader(
      { size: tail.total, read },
      parseDirectory(bytes, location),
      limitsOf(context),
      REMOTE_GAP,
    ),
  )
}

function remote(context: SyncContext, tail: RangeAnswer, reader: ArchiveReader): UpstreamArchive {
  context.facts['archiveBytes'] = tail.total
  return { reader, ...validators(tail.meta), dispose: () => Promise.resolve() }
}

/** The archive changed between two ranges of it: what was read so far is of no use. */
class ArchiveMoved extends MirrorError {
  constructor() {
    super('archive', 'the archive changed while it was read in ranges')
  }
}

/** What the central directory should weigh, from the records held. */
function expectedDirectory({ store }: SyncContext): number {
  const entries = store.countRecords()
  return entries * (CENTRAL_HEADER + '.json'.length) + store.sumIdBytes() + SPARE
}

function validators(meta: Meta): Pick<UpstreamArchive, 'asOf' | 'etag' | 'lastModified'> {
  const date = Date.parse(meta.lastModified ?? '')
  return {
    asOf: Number.isNaN(date) ? null : Math.min(date, meta.date), // no archive is newer than its answer
    etag: meta.etag,
    lastModified: meta.lastModified,
  }
}
