import { type FileHandle, open, rm } from 'node:fs/promises'
import { PRIVATE_FILE } from '../../base/files.ts'
import type { Config } from '../../config/schema.ts'
import { MirrorError } from '../../base/errors.ts'
import { networkError, refuseHtml } from './response.ts'
import type { OpenAnswer } from './response.ts'
import { type Session, pathAsked } from './session.ts'

/** Target, limits and callbacks of a download. */
export interface DownloadOptions {
  /** Final file; the partial one is stored next to it as `.part`, its validators as `.part.json`. */
  target: string
  config: Pick<
    Config['upstream'],
    'maxArchiveBytes' | 'archiveTimeoutMs' | 'lowSpeedBytesPerSecond' | 'lowSpeedSeconds'
  >
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
  deadline: AbortSignal
  onReached: (place: number) => void
}

/**
 * Appends a body to the file, within the limits. Bytes received before an interruption are kept. Throws `upstream_*`.
 */
export async function append(session: Session, { body }: OpenAnswer, transfer: Transfer): Promise<void> {
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
    throw networkError(error, `${path}: the download broke off after ${reached} bytes`, options.config.archiveTimeoutMs)
  } finally {
    unwatch()
    await file.close()
  }
}

/** Returns the bytes received before a connection error; null for other errors. */
function left(error: unknown, body: OpenAnswer['body']): Buffer | null {
  return isStorage(error) || error instanceof MirrorError ? null : body.read()
}

/** Aborts a body that is too slow over a time window. Returns the function that stops the check. */
function watchSpeed(
  body: OpenAnswer['body'],
  progress: Readonly<{ received: number }>,
  { lowSpeedBytesPerSecond, lowSpeedSeconds }: DownloadOptions['config'],
): () => void {
  let atLastCheck = 0
  const watch = setInterval(() => {
    if (progress.received - atLastCheck < lowSpeedBytesPerSecond * lowSpeedSeconds) {
      body.destroy(new Error(`slower than ${lowSpeedBytesPerSecond} bytes/s over ${lowSpeedSeconds} s`))
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
