import { type FileHandle, open, readFile, rename, rm, stat, writeFile } from 'node:fs/promises'
import { PRIVATE_FILE } from '../../base/files.ts'
import { MirrorError } from '../../base/errors.ts'
import { members, orNull, text } from '../../base/json/shapes.ts'
import type { Config } from '../../config/schema.ts'
import {
  type Meta,
  type OpenAnswer,
  type Validators,
  isPlain,
  networkError,
  parseContentRange,
  refuseHtml,
} from './response.ts'
import { type Session, pathAsked } from './session.ts'

/** Deadline of an archive, milliseconds: hundreds of megabytes over a slow line. What is not done then is resumed by the next run. */
export const ARCHIVE_TIMEOUT_MS = 3_600_000

function timeoutOf({ timeoutMs = ARCHIVE_TIMEOUT_MS }: DownloadOptions): number {
  return timeoutMs
}

/**
 * Downloads a file of any size to disk. An interrupted download is resumed (Range and If-Range with a strong
 * validator), in this run or a later one, and restarted when the file changed upstream. Size cap, low-speed limit and
 * deadline apply to the whole download. Returns the headers of the finished file's response.
 */
export async function downloadFile(session: Session, path: string, options: DownloadOptions): Promise<Meta> {
  const deadline = AbortSignal.timeout(timeoutOf(options))
  let furthest = await sizeOfPart(`${options.target}.part`)
  let reached = furthest
  let late = null as Error | null // set below, which the compiler does not track
  return session.retrying(
    async () => {
      if (deadline.aborted && late !== null) throw late // the deadline has passed for any further attempt
      const meta = await attempt(session, path, options, deadline, (place) => (reached = place))
      await rename(`${options.target}.part`, options.target)
      await rm(`${options.target}.part.json`, { force: true })
      return meta
    },
    (error) => {
      late = error instanceof Error ? error : null
      // Only bytes that no attempt reached before count as progress: otherwise a file that cannot be resumed would be
      // restarted without end.
      const forward = reached > furthest && !deadline.aborted
      furthest = Math.max(furthest, reached)
      return forward
    },
  )
}

async function attempt(
  session: Session,
  path: string,
  options: DownloadOptions,
  deadline: AbortSignal,
  onReached: (place: number) => void,
): Promise<Meta> {
  const part = `${options.target}.part`
  const known = await readPart(`${part}.json`)
  const validator = known?.validator ?? null
  const have = validator === null ? 0 : await sizeOfPart(part)
  const headers: Record<string, string> = { accept: '*/*', 'accept-encoding': 'identity' }
  if (have > 0 && validator !== null) {
    headers['range'] = `bytes=${have}-`
    headers['if-range'] = validator
  }
  const answer = await session.openBody(path, headers, deadline)
  if (known !== null && isComplete(answer, have, known)) {
    answer.body.destroy()
    return { ...answer.meta, etag: known.etag, lastModified: known.lastModified }
  }
  const resumed = answer.status === 206
  try {
    const { from, total } = await place(answer, path, have, known, options)
    if (!resumed) await restartDownload(part, answer.meta)
    await append(session, answer, { path, part, from, total, options, onReached })
    await checkSize(path, part, total)
  } catch (error) {
    answer.body.destroy()
    throw error
  }
  return resumed && known !== null
    ? { ...answer.meta, etag: known.etag, lastModified: known.lastModified }
    : answer.meta
}

/** Returns the position of the response's bytes and the length of the file (null: unknown), after checking them. */
async function place(
  { status, meta }: OpenAnswer,
  path: string,
  have: number,
  known: PartialDownload | null,
  options: DownloadOptions,
): Promise<{ from: number; total: number | null }> {
  if (!isPlain(meta))
    throw new MirrorError('upstream_shape', `${path}: content encoding ${String(meta.contentEncoding)}`)
  const range = status === 206 ? parseContentRange(meta.contentRange) : null
  const isContinuation = range !== null && have > 0 && range.start === have && isSameVersion(known, meta)
  if (status !== 200 && !isContinuation) {
    // The response does not continue the local part: discard it and restart.
    await rm(`${options.target}.part`, { force: true })
    throw new MirrorError('upstream_unreachable', `${path}: the download cannot be resumed, it restarts`)
  }
  const total = range?.total ?? meta.length
  const cap = options.config.maxArchiveBytes
  if (total !== null && total > cap) {
    throw new MirrorError(
      'upstream_too_large',
      `${path}: ${total} bytes, the cap (upstream.maxBytes, archive) is ${cap}`,
    )
  }
  const from = range?.start ?? 0
  if (total !== null) await options.checkRoom(total - from)
  return { from, total }
}

/** Throws unless the file is complete: a response may contain less than was requested. */
async function checkSize(path: string, part: string, total: number | null): Promise<void> {
  const size = await sizeOfPart(part)
  if (total === null || size === total) return
  throw new MirrorError('upstream_unreachable', `${path}: ${size} of ${total} bytes arrived`)
}

/** Returns whether an earlier attempt received the whole file, but ended before it was renamed. */
function isComplete({ status, meta }: OpenAnswer, have: number, known: PartialDownload): boolean {
  return status === 416 && have > 0 && meta.contentRange === `bytes */${have}` && isSameVersion(known, meta)
}

/** Validators of the file of an interrupted download, stored next to it. */
interface PartialDownload extends Validators {
  validator: string | null
}

const partialDownload = members<PartialDownload>({
  validator: orNull(text),
  etag: orNull(text),
  lastModified: orNull(text),
})

/** Returns whether the response is of the same version: a server that ignores If-Range would mix two versions. */
function isSameVersion(known: PartialDownload | null, meta: Meta): boolean {
  if (known === null) return false
  if (known.etag !== null && meta.etag !== null) return known.etag === meta.etag
  return known.lastModified === null || meta.lastModified === null || known.lastModified === meta.lastModified
}

/** Discards the old bytes before writing the new validator: a crash in between must not combine the two. */
async function restartDownload(part: string, meta: Meta): Promise<void> {
  await rm(part, { force: true })
  await writeFile(`${part}.json`, JSON.stringify(describe(meta)), { mode: PRIVATE_FILE })
}

/** Returns the validators to store; only a strong one may combine two parts of a file (RFC 9110, If-Range). */
function describe({ etag, lastModified }: Meta): PartialDownload {
  const strong = etag !== null && !etag.startsWith('W/') ? etag : null
  return { validator: strong ?? (etag === null ? lastModified : null), etag, lastModified }
}

/** Reads the validators stored next to an interrupted download; null when there are none. */
async function readPart(path: string): Promise<PartialDownload | null> {
  try {
    return partialDownload(JSON.parse(await readFile(path, 'utf8')), path)
  } catch {
    return null // absent or truncated by a crash: the download restarts
  }
}

/** Returns a file's size in bytes; 0 when there is none. */
async function sizeOfPart(path: string): Promise<number> {
  try {
    return (await stat(path)).size
  } catch {
    return 0
  }
}

/** Target, limits and callbacks of a download. */
export interface DownloadOptions {
  /** Final file; the partial one is stored next to it as `.part`, its validators as `.part.json`. */
  target: string
  config: Pick<Config['upstream'], 'maxArchiveBytes' | 'lowSpeedSeconds'>
  /** Deadline of the whole, milliseconds, if another than usual. */
  timeoutMs?: number
  onProgress(received: number, total: number | null): void
  /** Called with the remaining bytes before they are written; throws when the disk is too full. */
  checkRoom(bytes: number): Promise<void>
}

/** Interval of disk space checks for a response without a length, bytes. */
const CHECK_EVERY = 16_000_000

/** The part of a download that one response transfers. */
interface Transfer {
  path: string
  part: string
  from: number
  total: number | null
  options: DownloadOptions
  onReached: (place: number) => void
}

/**
 * Appends a body to the file, within the limits. Bytes received before an interruption are kept. Throws `upstream_*`.
 */
async function append(session: Session, { body }: OpenAnswer, transfer: Transfer): Promise<void> {
  const { path, part, from, total, options } = transfer
  const progress = { received: 0, checked: -CHECK_EVERY }
  const unwatch = watchSpeed(body, progress, options.config)
  // Not a stream: a stream drops its buffer on an error, and a later attempt resumes after those bytes.
  const file = await open(part, from > 0 ? 'a' : 'w', PRIVATE_FILE)
  const take = (chunk: Buffer): Promise<void> => takeChunk(session, transfer, file, progress, chunk)
  try {
    try {
      for await (const chunk of body) await take(chunk)
    } catch (error) {
      for (let rest = left(error, body); rest !== null; rest = body.read()) await take(rest)
      throw error
    }
  } catch (error) {
    if (isStorage(error)) {
      await rm(part, { force: true }) // it can be downloaded again; with a full disk not even the run could be logged
      throw error
    }
    const reached = from + progress.received
    if (reached === total) return // the connection failed after the last byte
    throw networkError(error, `${path}: the download broke off after ${reached} bytes`, timeoutOf(options))
  } finally {
    unwatch()
    await file.close()
  }
}

/** Returns the bytes received before a connection error; null for other errors. */
function left(error: unknown, body: OpenAnswer['body']): Buffer | null {
  return isStorage(error) || error instanceof MirrorError ? null : body.read()
}

/** Bytes a second: a line that is slower for all of a window counts as dead. */
const LOW_SPEED = 1000

/** Aborts a body that is too slow over a time window. Returns the function that stops the check. */
function watchSpeed(
  body: OpenAnswer['body'],
  progress: Readonly<{ received: number }>,
  { lowSpeedSeconds }: DownloadOptions['config'],
): () => void {
  let atLastCheck = 0
  const watch = setInterval(() => {
    if (progress.received - atLastCheck < LOW_SPEED * lowSpeedSeconds) {
      body.destroy(new Error(`slower than ${LOW_SPEED} bytes/s over ${lowSpeedSeconds} s`))
    }
    atLastCheck = progress.received
  }, lowSpeedSeconds * 1000)
  return () => clearInterval(watch)
}

async function takeChunk(
  session: Session,
  { path, from, total, options, onReached }: Transfer,
  file: FileHandle,
  progress: { received: number; checked: number },
  chunk: Buffer,
): Promise<void> {
  if (from + progress.received === 0) refuseHtml(chunk, pathAsked(session, path), 'an archive')
  progress.received += chunk.length
  session.countBytes(chunk.length)
  const reached = from + progress.received
  const cap = options.config.maxArchiveBytes
  if (reached > cap) {
    throw new MirrorError('upstream_too_large', `${path}: over the cap of ${cap} bytes`)
  }
  if (total === null && progress.received - progress.checked > CHECK_EVERY) {
    progress.checked = progress.received
    await options.checkRoom(CHECK_EVERY)
  }
  await file.writeFile(chunk)
  onReached(reached)
  options.onProgress(reached, total)
}

/** Returns whether an error is one of the file and not of the connection. */
function isStorage(error: unknown): boolean {
  if (!(error instanceof Error) || !('syscall' in error) || 'address' in error) return false
  return error.syscall === 'write' || error.syscall === 'open'
}
