import { randomBytes } from 'node:crypto'
import {
  type Stats,
  chmodSync,
  closeSync,
  constants,
  createReadStream,
  fstatSync,
  fsyncSync,
  lstatSync,
  mkdirSync,
  openSync,
  readSync,
  readdirSync,
  renameSync,
  rmSync,
  statSync,
  writeSync,
} from 'node:fs'
import { dirname, join, resolve } from 'node:path'
import { systemCode, whyUnreadable } from './errors.ts'

/**
 * Reports whether a file or folder exists. Throws the system's error where this cannot be known, as in a folder that is closed to
 * this user, and where its folder is a file: `existsSync` reports such a file as missing.
 */
export function isPresent(path: string): boolean {
  try {
    statSync(path)
    return true
  } catch (error) {
    if (systemCode(error) === 'ENOENT') return false
    throw error
  }
}

/** Modes of folders and files that the program creates: access for its own user only. */
export const PRIVATE_FOLDER = 0o700
export const PRIVATE_FILE = 0o600

/** Creates a file, mode 0600, unless it exists. SQLite gives its files beside a database the same mode. */
export function makeFile(path: string): void {
  closeSync(openSync(path, 'a', PRIVATE_FILE))
}

/**
 * Creates a folder and its parents, mode 0700. Node's recursive option never returns where a folder can be looked up but
 * not created, as under /proc; this function stops at the first folder that cannot be created. Throws the system's
 * error.
 */
export function makeFolder(path: string): void {
  try {
    mkdirSync(path, PRIVATE_FOLDER)
  } catch (error) {
    const code = systemCode(error)
    if (code === 'EEXIST') return
    if (code !== 'ENOENT' || dirname(path) === path) throw error
    makeFolder(dirname(path))
    mkdirSync(path, PRIVATE_FOLDER)
  }
}

/**
 * Replaces a file atomically by renaming a new file, mode 0600: readers see the old content or the new, and a symbolic
 * link is replaced, not followed. Throws the system's error.
 */
export function replacePrivateFile(path: string, content: string | Uint8Array): void {
  replaceInFolder(path, (write) => write(Buffer.from(content)))
}

/** How files of others are opened for reading: a pipe without a writer would be waited for. It is refused once it is open. */
export const READING = constants.O_RDONLY | constants.O_NONBLOCK

/** Writes all bytes to a file. */
export function writeAll(fd: number, bytes: Uint8Array): void {
  for (let at = 0; at < bytes.length;) at += writeSync(fd, bytes, at)
}

/** Names that the program creates in a data folder; all others belong to someone else. */
const OURS =
  /^(derived|downloads|backups|fleet|(mirror|webhooks)\.db.*|.+\.lock(\.pid)?|serve\.(instance|settings)|serving|local\.key|webhook-secrets\.json|inbox-tries\.json|verify\.last)$/

/**
 * Removes the permissions of group and others from the program's own files in a data folder, which a copy by hand or
 * another umask gave them. Links and files of other users are left unchanged.
 */
export function tightenFolder(dataDir: string): void {
  for (const name of readdirSync(dataDir)) if (OURS.test(name)) tighten(join(dataDir, name))
}

function tighten(path: string): void {
  try {
    const stat = lstatSync(path)
    if (stat.isSymbolicLink()) return
    if ((stat.mode & 0o077) !== 0) chmodSync(path, stat.mode & PRIVATE_FOLDER)
    if (stat.isDirectory()) for (const name of readdirSync(path)) tighten(join(path, name))
  } catch (error) {
    if (!IGNORED.has(systemCode(error) ?? '')) throw error
  }
}

/** Errors that are ignored: the file was removed meanwhile, belongs to another user, or is on a read-only disk. */
const IGNORED: ReadonlySet<string> = new Set(['ENOENT', 'EPERM', 'EACCES', 'EROFS'])

/**
 * Replaces a file atomically: `fill` writes a temporary file in the same folder, which is synced and then renamed.
 * Readers see the old content or the new. When `fill` throws, nothing is changed.
 */
export function replaceFile(path: string, fill: (write: (piece: Uint8Array) => void) => void): void {
  replaceInFolder(path, fill)
  syncFolder(dirname(path))
}

function replaceInFolder(path: string, fill: (write: (piece: Uint8Array) => void) => void): void {
  const draft = draftIn(dirname(path))
  const fd = openSync(draft, 'wx', PRIVATE_FILE) // never through a link that somebody else made
  try {
    try {
      fill((piece) => writeAll(fd, piece))
      fsyncSync(fd)
    } finally {
      closeSync(fd)
    }
    renameSync(draft, path)
  } catch (error) {
    rmSync(draft, { force: true })
    throw error
  }
}

const DRAFT = /^\.pm-draft-[\da-f]{12}$/
/** A draft is written within moments: one of this age is of a process that was killed, milliseconds. */
const LEFT_MS = 3_600_000

/** Returns the path of a new file in a folder, to be renamed or removed at once; removes what killed processes left of such. */
export function draftIn(folder: string): string {
  try {
    for (const name of readdirSync(folder)) if (DRAFT.test(name)) removeIfLeft(join(folder, name))
  } catch {
    // Writing the new one says what is wrong with the folder.
  }
  return join(folder, `.pm-draft-${randomBytes(6).toString('hex')}`)
}

function removeIfLeft(path: string): void {
  const made = statSync(path, { throwIfNoEntry: false })
  if (made !== undefined && Date.now() - made.mtimeMs > LEFT_MS) rmSync(path, { force: true })
}

/**
 * Returns a text that is another one when the file was replaced or written to, but for changes within the clock's own step; '' where
 * there is none, or none can be seen. Reading the file says why.
 */
export function fileMark(path: string): string {
  try {
    const found = statSync(path, { throwIfNoEntry: false })
    return found === undefined ? '' : [found.ino, found.size, found.mtimeMs, found.ctimeMs].join(' ')
  } catch {
    return ''
  }
}

/** Renames a synced file to its final name, durably; replaces a file of that name. */
export function publishFile(draft: string, path: string): void {
  renameSync(draft, path)
  syncFolder(dirname(resolve(path)))
}

/** Syncs a folder, which makes a new file name durable; skipped on systems that cannot open folders. */
export function syncFolder(folder: string): void {
  try {
    const fd = openSync(folder, 'r')
    fsyncSync(fd)
    closeSync(fd)
  } catch {
    // Not supported on every system.
  }
}

/** Most bytes of a file that a setting or an option names: secrets, keys, certificates and settings have far fewer. */
const NAMED_FILE_BYTES = 4 << 20

/** A path that an operator named is no file that can be read as one. */
class FileKindError extends Error {
  readonly code: string
  constructor(code: string, message: string) {
    super(message)
    this.code = code
  }
}

/** Throws for a path that is no regular file: reading a pipe waits, and reading a device does not end. */
export function expectFile(stats: Stats): void {
  if (stats.isDirectory()) throw new FileKindError('EISDIR', 'it is a folder: name a file')
  if (!stats.isFile()) throw new FileKindError('ENOTFILE', 'it is a pipe, a device or a socket: name a regular file')
}

/**
 * Reads a file that a setting or an option names. Throws the system's error, and one with the reason for anything but a regular
 * file of at most `maxBytes`.
 */
export function readNamedFile(path: string, maxBytes = NAMED_FILE_BYTES): Buffer {
  const file = openSync(path, READING)
  try {
    const stats = fstatSync(file)
    expectFile(stats)
    const bytes = stats.size > maxBytes ? null : readAtMost(file, maxBytes)
    if (bytes !== null) return bytes
    const most = `${maxBytes} bytes, the most that such a file may have`
    throw new FileKindError('ETOOLARGE', `it has more than ${most}: check the path`)
  } finally {
    closeSync(file)
  }
}

/** Reads a file to its end; null when it has more. Its size may be 0 all the same, as below /proc, or grow. */
function readAtMost(file: number, maxBytes: number): Buffer | null {
  const pieces: Buffer[] = []
  let total = 0
  for (;;) {
    const piece = Buffer.allocUnsafe(Math.min(65_536, maxBytes + 1))
    const read = readSync(file, piece)
    if (read === 0) return Buffer.concat(pieces)
    pieces.push(piece.subarray(0, read))
    total += read
    if (total > maxBytes) return null
  }
}

/**
 * Reads a file to its end, or standard input for `-`; null when it has more bytes than that. It reads no further, whatever it is: a pipe
 * or a device has no size, and may have no end.
 */
export async function readInput(file: string, maxBytes: number): Promise<Buffer | null> {
  const source = file === '-' ? process.stdin : createReadStream(file, { highWaterMark: 2 ** 20 })
  const chunks: Buffer[] = []
  let size = 0
  for await (const chunk of source as AsyncIterable<Buffer>) {
    chunks.push(chunk)
    size += chunk.length
    if (size > maxBytes) return null
  }
  return Buffer.concat(chunks)
}

/** Returns why a named file cannot be read, in a few words: what the path is, what to do about it, or the system's code. */
export function briefReason(error: unknown, otherwise: string): string {
  if (error instanceof FileKindError && error.code !== 'EISDIR') return error.message
  return whyUnreadable(error, systemCode(error) ?? otherwise)
}
