import { type FileHandle, open, rm } from 'node:fs/promises'
import type { Config } from '../../config/schema.ts'
import { MirrorError } from '../../core/errors.ts'
import { networkError } from './response.ts'
import type { OpenAnswer, Session } from './session.ts'

/** Where a download goes, within which limits, and whom it tells. */
export interface DownloadOptions {
  /** Final file; the unfinished one lies beside it as `.part`, its validator as `.part.json`. */
  target: string
  config: Pick<
    Config['upstream'],
    'maxArchiveBytes' | 'archiveTimeoutMs' | 'lowSpeedBytesPerSecond' | 'lowSpeedSeconds'
  >
  onProgress(received: number, total: number | null): void
  /** Called with the bytes still to come before they are written; throws when there is no room. */
  checkRoom(bytes: number): Promise<void>
}

/** An answer without a length is asked for room again and again, bytes. */
const CHECK_EVERY = 16_000_000

/** One answer's part of a download. */
interface Transfer {
  path: string
  part: string
  from: number
  total: number | null
  options: DownloadOptions
  deadline: AbortSignal
  onReached: (place: number) => void
}

/** Writes a body to the file as it comes, within the limits. What arrived before a break is kept. Throws `upstream_*`. */
export async function append(
  session: Session,
  { body }: OpenAnswer,
  transfer: Transfer,
): Promise<void> {
  const { path, part, from, total, options } = transfer
  const progress = { received: 0, checked: -CHECK_EVERY }
  const unwatch = watchSpeed(body, progress, options.config)
  // Not a stream: one drops what it has buffered when the body breaks off, and that is what a later attempt goes on from.
  const file = await open(part, from > 0 ? 'a' : 'w', 0o600)
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
      await rm(part, { force: true }) // what it holds can be fetched again; a full disk cannot even log the run
      throw error
    }
    const reached = from + progress.received
    if (reached === total) return // the connection ended badly, but not before it had brought everything
    throw networkError(
      error,
      `${path}: the download broke off after ${reached} bytes`,
      options.config.archiveTimeoutMs,
    )
  } finally {
    unwatch()
    await file.close()
  }
}

/** What the connection had brought when it broke, if it was the connection that did. */
function left(error: unknown, body: OpenAnswer['body']): Buffer | null {
  return isStorage(error) || error instanceof MirrorError ? null : body.read()
}

/** Ends a body that brings too little in a window of time. Returns how to stop watching. */
function watchSpeed(
  body: OpenAnswer['body'],
  progress: Readonly<{ received: number }>,
  { lowSpeedBytesPerSecond, lowSpeedSeconds }: DownloadOptions['config'],
): () => void {
  let atLastCheck = 0
  const watch = setInterval(() => {
    if (progress.received - atLastCheck < lowSpeedBytesPerSecond * lowSpeedSeconds) {
      body.destroy(
        new Error(`slower than ${lowSpeedBytesPerSecond} bytes/s over ${lowSpeedSeconds} s`),
      )
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

/** A fault of the file, not of the connection. */
function isStorage(error: unknown): boolean {
  if (!(error instanceof Error) || !('syscall' in error) || 'address' in error) return false
  return error.syscall === 'write' || error.syscall === 'open'
}
