import { type Dirent, lstatSync, mkdirSync, readdirSync, renameSync, writeFileSync } from 'node:fs'
import { basename, join } from 'node:path'
import { systemCode, MirrorError, messageOf } from '../../../base/errors.ts'
import { groupFiles } from '../format/split-names.ts'
import { PRIVATE_FILE, PRIVATE_FOLDER, readNamedFile } from '../../../base/files.ts'
import type { InboxStatus } from '../../../base/reports/transfer.ts'
import { nameStorageError } from '../../../store/database/faults.ts'

/** The files in the inbox that form one bundle. */
export interface InboxFile {
  /** Without the number of a part. */
  readonly name: string
  readonly files: readonly string[]
  /** Changes while a file is being written. */
  readonly stamp: string
}

const BUNDLE = /^[^.].*\.(?:thin|zip(?:\.\d{3}|\.sha256)?)$/

/** Returns the bundles in the inbox, by name: only regular files. Throws the system's error for an unreadable folder. */
export function listArrivals(folder: string): InboxFile[] {
  const entries = readdirSync(folder, { withFileTypes: true })
  const names = entries
    .filter((entry) => entry.isFile() && BUNDLE.test(entry.name))
    .map(({ name }) => join(folder, name))
  return groupFiles(names.sort()).map((files) => {
    const name = basename(files[0] ?? '').replace(/\.(?:\d{3}|sha256)$/, '')
    return { name, files, stamp: files.map(stampOf).join(' ') }
  })
}

/** Returns the files in the inbox that have other names: no bundle is read from one. Throws as `listArrivals`. */
export function listOthers(folder: string): InboxFile[] {
  const entries = readdirSync(folder, { withFileTypes: true })
  return entries
    .filter((entry) => entry.isFile() && !BUNDLE.test(entry.name) && !/^\.|\.need$/.test(entry.name))
    .map(({ name }) => ({ name, files: [join(folder, name)], stamp: stampOf(join(folder, name)) }))
}

/** Returns the names of ignored inbox entries: links, pipes, folders. Throws as `listArrivals`. */
export function listSkipped(folder: string): string[] {
  return readdirSync(folder, { withFileTypes: true })
    .filter(isSkipped)
    .map(({ name }) => name)
    .sort()
}

function isSkipped(entry: Dirent): boolean {
  return !entry.isFile() && !entry.name.startsWith('.') && !OWN_FOLDERS.includes(entry.name)
}

/** Folders that an inbox creates. */
export const OWN_FOLDERS: readonly string[] = ['done', 'refused']

/**
 * Returns a text that changes with the file. A file that is removed or unreadable meanwhile does not affect the others.
 */
function stampOf(path: string): string {
  try {
    const { size, mtimeMs, ino } = lstatSync(path)
    return `${size}:${mtimeMs}:${ino}`
  } catch (error) {
    return systemCode(error) ?? 'gone'
  }
}

/**
 * Moves a bundle's files into a folder of the inbox, with a note for a refused one; never overwrites a file, and never
 * follows a link. Returns where the first of them is now, relative to the inbox; null where that is not possible, as on a
 * read-only medium.
 */
export function moveAside(
  folder: string,
  to: 'done' | 'refused',
  { name, files }: InboxFile,
  note: string | null,
): string | null {
  try {
    const aside = join(folder, to)
    if (!isThere(aside)) mkdirSync(aside, PRIVATE_FOLDER)
    if (!lstatSync(aside).isDirectory()) return null
    const names = [...files.map((file) => basename(file)), ...(note === null ? [] : [`${name}.txt`])]
    const prefix = freePrefix(aside, names)
    if (note !== null)
      writeFileSync(join(aside, `${prefix}${name}.txt`), `${note}\n`, {
        flag: 'wx',
        mode: PRIVATE_FILE,
      })
    for (const file of files) renameSync(file, join(aside, prefix + basename(file)))
    return join(to, prefix + basename(files[0] ?? name))
  } catch {
    return null
  }
}

/** A refused bundle: where it is in the inbox, when and why. */
export type Refused = NonNullable<InboxStatus['lastRefused']>

const NOTE = /^(\d{4}-[\dT:.-]+Z) (.+)\n$/s
const NOTE_BYTES = 16_384

/** Returns the refused bundles that lie in an inbox with the note of `moveAside`, the last one last. */
export function listRefused(folder: string): Refused[] {
  const aside = join(folder, 'refused')
  try {
    const names = new Set(readdirSync(aside))
    const bundles = [...names].map((name) => [name, name.replace(/\.\d{3}$/, '')] as const)
    const found = bundles.flatMap(([name, whole]) => {
      if (!names.has(`${whole}.txt`)) return []
      const [, at, why] = NOTE.exec(readNamedFile(join(aside, `${whole}.txt`), NOTE_BYTES).toString('utf8')) ?? []
      const isFirst = name === whole || name.endsWith('.001')
      if (!isFirst || at === undefined || why === undefined) return []
      return [{ file: join('refused', name), at, why: stripPaths(why, { inbox: folder }) }]
    })
    return found.toSorted((one, other) => one.at.localeCompare(other.at))
  } catch {
    return [] // none was refused, or the medium is gone
  }
}

/** Returns a prefix that makes all names unused: empty, `2-`, `3-` and so on. */
function freePrefix(folder: string, names: readonly string[]): string {
  for (let n = 1; ; n++) {
    const prefix = n === 1 ? '' : `${n}-`
    if (!names.some((name) => isThere(join(folder, prefix + name)))) return prefix
  }
}

function isThere(path: string): boolean {
  return lstatSync(path, { throwIfNoEntry: false }) !== undefined
}

/** Reports whether a file is there, or that cannot be known, as on a failing medium. */
export function mayBeThere(path: string): boolean {
  try {
    return isThere(path)
  } catch {
    return true
  }
}

/**
 * Returns a `storage` error that names the folder for file system errors, the data folder for SQLite's; others
 * unchanged.
 */
export function nameBoxFault(error: unknown, box: 'inbox' | 'outbox', folder: string, dataDir: string): unknown {
  const code = systemCode(error)
  if (error instanceof MirrorError || code === undefined) return error
  if (code.startsWith('SQLITE_') || !/^E[A-Z]+$/.test(code)) return nameStorageError(error, dataDir)
  return new MirrorError('storage', `the ${box} ${folder} cannot be read or written (${messageOf(error)})`, {
    cause: error,
  })
}

/** Returns a message without absolute paths, which any client may read. */
export function stripPaths(
  message: string,
  folders: Readonly<Partial<Record<'inbox' | 'outbox' | 'data', string>>>,
): string {
  return Object.entries(folders)
    .sort(([, one], [, other]) => other.length - one.length)
    .reduce((text, [name, path]) => text.replaceAll(path, `[${name}]`), message)
}
