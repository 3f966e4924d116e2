import { closeSync, fstatSync, openSync, read, statSync } from 'node:fs'
import { join } from 'node:path'
import type { ServerResponse } from 'node:http'
import { Readable } from 'node:stream'
import { promisify } from 'node:util'
import { createGunzip } from 'node:zlib'
import { MirrorError, messageOf, systemCode } from '../../base/errors.ts'
import type { ArchiveInfo } from '../../store/osv/reads.ts'
import { writable } from '../../base/connections/responses.ts'

const readAt = promisify(read)

/** Buffer of one client, bytes; bounds the memory that thousands of slow clients use. */
const CHUNK = 32 * 1024

/** An open archive of one snapshot. It stays readable until the last `release`, even if its name is removed. */
export interface OpenArchive {
  readonly info: ArchiveInfo
  /** Sends bytes `start` to `end`, both inclusive, and ends the response; rejects when the file cannot be read. */
  send(response: ServerResponse, start: number, end: number): Promise<void>
}

/**
 * Keeps one descriptor per snapshot in use, so that a download never mixes two archives. A file that was made again at its place is
 * opened again: the one before was damaged. `onLost` is called when the file is
 * missing or has another size: it can be rebuilt.
 */
export function createArchiveFiles(folder: string, onLost: () => void = () => undefined) {
  let open: ReturnType<typeof openArchiveFile> | null = null
  const release = (): void => {
    open?.release()
    open = null
  }
  const current = (info: ArchiveInfo): OpenArchive => {
    const isSame = open !== null && open.info.file === info.file && open.info.sha256 === info.sha256
    if (open !== null && isSame && !isReplaced(join(folder, info.file), open.inode)) return open
    release()
    try {
      open = openArchiveFile(folder, info)
    } catch (error) {
      onLost()
      throw error
    }
    return open
  }
  return {
    /** The archive to serve now; opens it when it is not. Throws `storage` when its file is not what it should be. */
    current,
    /** Opens it ahead of the first request; a failure is left to that request to report. */
    prepare(info: ArchiveInfo): void {
      try {
        current(info)
      } catch {
        // The next request for the archive tries again, and its error is logged.
      }
    },
    /** Lets go of the current one; requests in flight finish reading it. */
    release,
  }
}

function isReplaced(path: string, inode: number): boolean {
  const now = statSync(path, { throwIfNoEntry: false })
  return now !== undefined && now.ino !== inode
}

/**
 * Opens a file of which size and content are known, for one response after the other. `packed`: the content is stored as this
 * gzip file alone, and is inflated as it is sent. Throws `storage`.
 */
export function openArchiveFile(
  folder: string,
  info: ArchiveInfo,
  packed: Pick<ArchiveInfo, 'file' | 'size'> | null = null,
): OpenArchive & { readonly inode: number; release(): void } {
  const stored = packed ?? info
  const descriptor = openFile(join(folder, stored.file))
  const { size, ino } = fstatSync(descriptor)
  if (size !== stored.size) {
    closeSync(descriptor)
    throw new MirrorError('storage', `${stored.file} has ${size} bytes, not ${stored.size}`)
  }
  let users = 1
  const leave = (): void => {
    users--
    if (users === 0) closeSync(descriptor)
  }
  return {
    info,
    inode: ino,
    release: leave,
    async send(response, start, end) {
      const sender = { response, movedAt: performance.now() }
      users++
      try {
        makeRoom()
        senders.add(sender)
        if (packed === null) await pump(descriptor, sender, start, end)
        else await pumpInflated(descriptor, sender, { start, end, size: info.size })
      } finally {
        senders.delete(sender)
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

/** Chunks that may be read at the same time, over all clients: others are scheduled in between, however many read an archive. */
const READS = 8
/** Chunks that are kept for the next use; all others are given back to the system. */
const KEPT_CHUNKS = 32

const free: Buffer[] = []
const slots: { left: number; readonly waiting: (() => void)[] } = { left: READS, waiting: [] }

/** Keeps a chunk whose bytes have left. */
function release(chunk: Buffer): void {
  if (free.length < KEPT_CHUNKS) free.push(chunk)
}

async function readInOrder(descriptor: number, chunk: Buffer, length: number, at: number): Promise<number> {
  if (slots.left > 0) slots.left--
  else await new Promise<void>((resolve) => slots.waiting.push(resolve))
  try {
    return (await readAt(descriptor, chunk, 0, length, at)).bytesRead
  } finally {
    const next = slots.waiting.shift()
    if (next === undefined) slots.left++
    else next()
  }
}

interface Sender {
  readonly response: ServerResponse
  /** When it last took something, milliseconds of the monotonic clock. */
  movedAt: number
}

/** Readers that may stop reading at the same time: each costs a chunk. With more, the one that stopped first is cut off. */
const MOST_STOPPED = 128
/** A reader that takes nothing for this long has stopped, milliseconds. */
const STOPPED_MS = 5_000
const senders = new Set<Sender>()

/** Cuts off the reader that stopped first, where too many have. */
function makeRoom(): void {
  if (senders.size <= MOST_STOPPED) return
  const since = performance.now() - STOPPED_MS
  const stopped = [...senders].filter(({ movedAt }) => movedAt < since)
  const [first] = stopped.sort((one, other) => one.movedAt - other.movedAt)
  if (first !== undefined && stopped.length > MOST_STOPPED) first.response.destroy()
}

/** Reads the next chunk only when the last one is on its way. */
async function pump(descriptor: number, sender: Sender, start: number, end: number): Promise<void> {
  const { response } = sender
  for (let at = start; at <= end;) {
    const chunk = free.pop() ?? Buffer.allocUnsafeSlow(CHUNK)
    const length = Math.min(CHUNK, end - at + 1)
    const bytesRead = await readInOrder(descriptor, chunk, length, at)
    if (response.destroyed) return release(chunk)
    if (bytesRead === 0) throw new MirrorError('storage', 'the archive ends before its end')
    at += bytesRead
    const goesOn = response.write(chunk.subarray(0, bytesRead), () => release(chunk))
    if (!goesOn) await writable(response)
    sender.movedAt = performance.now()
  }
  response.end()
}

/** Inflates a file from its beginning, and sends a range of its content, which has `size` bytes. */
async function pumpInflated(
  descriptor: number,
  sender: Sender,
  { start, end, size }: { readonly start: number; readonly end: number; readonly size: number },
): Promise<void> {
  const { response } = sender
  const packed = Readable.from(eachPiece(descriptor), { objectMode: false })
  const content = createGunzip({ chunkSize: CHUNK })
  packed.on('error', (error) => content.destroy(error)).pipe(content)
  let at = 0
  try {
    for await (const piece of content as AsyncIterable<Buffer>) {
      if (response.destroyed) return
      const part = piece.subarray(Math.max(0, start - at), Math.max(0, end + 1 - at))
      at += piece.length
      if (part.length > 0 && !response.write(part)) await writable(response)
      sender.movedAt = performance.now()
      if (at > end && end + 1 < size) break // otherwise to the end, where the sums are compared
    }
    if (at <= end || at > size) throw new MirrorError('storage', 'a file does not inflate to its size')
    response.end()
  } finally {
    packed.destroy()
    content.destroy()
  }
}

async function* eachPiece(descriptor: number): AsyncGenerator<Buffer> {
  for (let at = 0; ;) {
    const piece = Buffer.allocUnsafe(CHUNK)
    const bytesRead = await readInOrder(descriptor, piece, CHUNK, at)
    if (bytesRead === 0) return
    at += bytesRead
    yield piece.subarray(0, bytesRead)
  }
}
