import { closeSync, fstatSync, openSync, read } from 'node:fs'
import { join } from 'node:path'
import type { ServerResponse } from 'node:http'
import { promisify } from 'node:util'
import { MirrorError, messageOf, systemCode } from '../errors.ts'
import type { ArchiveInfo } from '../store/osv.ts'
import { writable } from './writable.ts'

const readAt = promisify(read)

/** Bytes one reader may hold; what keeps thousands of slow readers affordable. */
const CHUNK = 32 * 1024

/** An open archive of one snapshot. It stays readable until the last `release`, whatever happens to its name. */
export interface OpenArchive {
  readonly info: ArchiveInfo
  /** Sends bytes `start` to `end`, both inclusive, and ends the response; rejects when the file cannot be read. */
  send(response: ServerResponse, start: number, end: number): Promise<void>
}

/** The archive files of the data folder, one open at a time. */
export interface ArchiveFiles {
  /** The archive to serve now; opens it when it is not. Throws `storage` when its file is not what it should be. */
  current(info: ArchiveInfo): OpenArchive
  /** Opens it ahead of the first request; a failure is left to that request to report. */
  prepare(info: ArchiveInfo): void
  /** Lets go of the current one; requests in flight finish reading it. */
  release(): void
}

/**
 * Keeps one descriptor per snapshot in use, so that a download never mixes two archives. `onLost` is told when the file is
 * gone or not as long as it was: it can be made again.
 */
export function createArchiveFiles(
  folder: string,
  onLost: () => void = () => undefined,
): ArchiveFiles {
  let open: (OpenArchive & { release(): void }) | null = null
  const release = (): void => {
    open?.release()
    open = null
  }
  const current = (info: ArchiveInfo): OpenArchive => {
    if (open !== null && open.info.file === info.file && open.info.sha256 === info.sha256)
      return open
    release()
    try {
      open = openArchive(folder, info)
    } catch (error) {
      onLost()
      throw error
    }
    return open
  }
  return {
    current,
    prepare(info) {
      try {
        current(info)
      } catch {
        // The next request for the archive tries again, and its error is logged.
      }
    },
    release,
  }
}

/** Opens a file of which size and content are known, for one response after the other. Throws `storage`. */
export function openArchive(folder: string, info: ArchiveInfo): OpenArchive & { release(): void } {
  const descriptor = openFile(join(folder, info.file))
  const { size } = fstatSync(descriptor)
  if (size !== info.size) {
    closeSync(descriptor)
    throw new MirrorError('storage', `${info.file} has ${size} bytes, not ${info.size}`)
  }
  let users = 1
  const leave = (): void => {
    users--
    if (users === 0) closeSync(descriptor)
  }
  return {
    info,
    release: leave,
    async send(response, start, end) {
      users++
      try {
        await pump(descriptor, response, start, end)
      } finally {
        leave()
      }
    },
  }
}

function openFile(path: string): number {
  try {
    return openSync(path, 'r')
  } catch (error) {
    const why =
      systemCode(error) === 'ENOENT'
        ? `the derived archive ${path} is missing: it is made again, to the byte`
        : `the derived archive ${path} cannot be opened (${messageOf(error)})`
    throw new MirrorError('storage', why, { cause: error })
  }
}

/** Reads the next chunk only when the last one is on its way. */
async function pump(
  descriptor: number,
  response: ServerResponse,
  start: number,
  end: number,
): Promise<void> {
  for (let at = start; at <= end;) {
    const chunk = Buffer.allocUnsafe(Math.min(CHUNK, end - at + 1))
    const { bytesRead } = await readAt(descriptor, chunk, 0, chunk.length, at)
    if (response.destroyed) return
    if (bytesRead === 0) throw new MirrorError('storage', 'the archive ends before its end')
    at += bytesRead
    if (!response.write(chunk.subarray(0, bytesRead))) await writable(response)
  }
  response.end()
}
