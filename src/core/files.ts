import { randomBytes } from 'node:crypto'
import {
  chmodSync,
  closeSync,
  fsyncSync,
  lstatSync,
  mkdirSync,
  openSync,
  readdirSync,
  renameSync,
  rmSync,
  writeFileSync,
  writeSync,
} from 'node:fs'
import { dirname, join, basename } from 'node:path'
import { systemCode } from './errors.ts'

/** The modes of what the program creates: for its own user alone. */
export const PRIVATE_FOLDER = 0o700
export const PRIVATE_FILE = 0o600

/**
 * Creates a folder and those above it, for their owner alone. Node's own recursive way never returns where a folder can be looked up but not
 * created, as under /proc; this one gives up at the first that cannot be. Throws the system's error.
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
 * Writes a file whole, for its owner alone, by a new file that takes the place of the old: a reader sees one or the other,
 * and a link is replaced, not followed. Throws the system's error.
 */
export function replacePrivateFile(path: string, text: string): void {
  const draft = `${path}.${randomBytes(6).toString('hex')}`
  try {
    const file = openSync(draft, 'wx', PRIVATE_FILE)
    try {
      writeFileSync(file, text)
      fsyncSync(file)
    } finally {
      closeSync(file)
    }
    renameSync(draft, path)
  } catch (error) {
    rmSync(draft, { force: true })
    throw error
  }
}

/** What the program puts into a data folder; anything else there belongs to someone else. */
const OURS =
  /^(derived|downloads|(mirror|webhooks)\.db.*|.+\.lock(\.pid)?|serve\.instance|local\.key|webhook-secrets\.json|inbox-tries\.json)$/

/**
 * Takes from group and others what an earlier version, or another umask, gave them on the program's own files in a data
 * folder. Links are left alone, and so are files of another user, which only that one can change.
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
    if (!LEFT_ALONE.has(systemCode(error) ?? '')) throw error
  }
}

/** What is removed meanwhile, and what belongs to another user or lies on a read-only disk. */
const LEFT_ALONE: ReadonlySet<string> = new Set(['ENOENT', 'EPERM', 'EACCES', 'EROFS'])

/**
 * Replaces a file as a whole: what `fill` writes lies beside it, on the disk, before it gets the name. Whoever reads sees
 * the old content or the new. When `fill` throws, nothing is changed.
 */
export function replaceFile(
  path: string,
  fill: (write: (piece: Uint8Array) => void) => void,
): void {
  const folder = dirname(path)
  const temporary = join(folder, `.${basename(path)}.${process.pid}`)
  const fd = openSync(temporary, 'w', PRIVATE_FILE)
  try {
    try {
      fill((piece) => {
        for (let at = 0; at < piece.length;) at += writeSync(fd, piece, at)
      })
      fsyncSync(fd)
    } finally {
      closeSync(fd)
    }
    renameSync(temporary, path)
  } catch (error) {
    rmSync(temporary, { force: true })
    throw error
  }
  syncFolder(folder)
}

/** A name is on the disk with its folder; where folders cannot be opened, the system sees to it. */
function syncFolder(folder: string): void {
  try {
    const fd = openSync(folder, 'r')
    fsyncSync(fd)
    closeSync(fd)
  } catch {
    // Not on every system.
  }
}
