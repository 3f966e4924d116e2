import { closeSync, lstatSync, openSync, readFileSync, rmSync, rmdirSync } from 'node:fs'
import { dirname, join } from 'node:path'
import { digestOfOpenFile } from '../core/digest.ts'
import { MirrorError, systemCode } from '../core/errors.ts'
import { makeFolder, replaceFile } from '../core/files.ts'
import type { Views } from '../store/views/reads.ts'

/** Where osv-scanner up to 2.4 and osv-scalibr look for their databases, below one folder. */
const LAYOUTS = ['osv-scanner', 'osv-scalibr'] as const
/** What was written into a folder, so that only that is ever removed from it. */
const STAMP = '.patchmirror-export.json'

/** What an export did, in paths below its folder. */
export interface ExportDbReport {
  readonly written: readonly string[]
  /** Files that were what they should be already. */
  readonly kept: number
  /** Of ecosystems that no record names any more. */
  readonly removed: readonly string[]
  /** Ecosystems whose names cannot be folders. */
  readonly skipped: readonly string[]
}

/**
 * Writes the archives of the views as scanners keep them on disk: each file is replaced as a whole and on the disk before
 * it has its name; one that has the right content stays untouched. `ecosystems`: none means all, and then what was
 * written for one that is gone is removed. Throws `usage` for an ecosystem that is not there, `storage` for a folder that
 * cannot be written, and for one below `dir` that is a link, `corrupt` for damaged views.
 */
export function exportDb(views: Views, dir: string, ecosystems: readonly string[]): ExportDbReport {
  try {
    return writeAll(views, dir, ecosystems)
  } catch (error) {
    const code = systemCode(error)
    if (error instanceof MirrorError || code === undefined) throw error
    throw new MirrorError('storage', `cannot write to ${dir} (${code})`, { cause: error })
  }
}

function writeAll(views: Views, dir: string, ecosystems: readonly string[]): ExportDbReport {
  const names = chosen(views, ecosystems)
  const fit = names.filter(isFolderName)
  const wanted = new Map(
    fit.flatMap((name) => LAYOUTS.map((layout) => [join(layout, name, 'all.zip'), name] as const)),
  )
  const before = readStamp(dir)
  makeFolder(dir)
  for (const path of [...wanted.keys(), ...before.keys()]) refuseLinks(dir, path)
  const digests = new Map([...wanted].map(([path, name]) => [path, assetOf(views, name).sha256]))
  writeStamp(dir, new Map([...before, ...digests])) // before any file, so that every written file is recorded
  const written: string[] = []
  for (const [path, name] of wanted) if (place(views, name, join(dir, path))) written.push(path)
  const gone = ecosystems.length > 0 ? [] : [...before].filter(([path]) => !wanted.has(path))
  const removed = gone.flatMap(([path, digest]) => (remove(dir, path, digest) ? [path] : []))
  const kept = ecosystems.length > 0 ? [...before] : []
  writeStamp(dir, new Map([...kept, ...digests]))
  const skipped = names.filter((name) => !isFolderName(name))
  return { written, kept: wanted.size - written.length, removed, skipped }
}

/** Throws when a path below the named folder is a link: writing there would replace files outside of it. */
function refuseLinks(dir: string, path: string): void {
  const [layout = '', name = ''] = path.split('/')
  for (const folder of [join(dir, layout), join(dir, layout, name)]) {
    const found = lstatSync(folder, { throwIfNoEntry: false })
    if (found?.isDirectory() !== false) continue
    const what = found.isSymbolicLink() ? 'a symbolic link' : 'no folder'
    const advice = 'remove it, or name the folder that it leads to'
    throw new MirrorError('storage', `${folder} is ${what}: ${advice}; nothing was written`)
  }
}

function chosen(views: Views, ecosystems: readonly string[]): string[] {
  const known = views.listViews().map(({ name }) => name)
  const unknown = ecosystems.filter((name) => !known.includes(name))
  if (unknown.length === 0) return ecosystems.length === 0 ? known : [...new Set(ecosystems)]
  const have = known.length === 0 ? 'there are none yet' : `there are: ${known.join(', ')}`
  throw new MirrorError('usage', `no record names the ecosystem ${unknown.join(', ')}; ${have}`)
}

/** Upstream decides what ecosystems are called: none may lead out of the folder. */
function isFolderName(name: string): boolean {
  return (
    name !== '.' && name !== '..' && !/[/\\\p{Cc}]/u.test(name) && Buffer.byteLength(name) < 200
  )
}

function assetOf(views: Views, name: string) {
  const asset = views.readAsset(`${name}/all.zip`)
  if (asset === null) throw new MirrorError('corrupt', `the views have no archive of ${name}`)
  return asset
}

/** True when the file had to be written. */
function place(views: Views, name: string, path: string): boolean {
  const { file, size, sha256 } = assetOf(views, name)
  if (digestOf(path) === sha256) return false
  makeFolder(dirname(path))
  replaceFile(path, (write) => {
    const copied = readThrough(join(views.folder, file), write)
    if (copied !== sha256)
      throw new MirrorError('corrupt', `the archive of ${name} is not the ${size} bytes it was`)
  })
  return true
}

function remove(dir: string, path: string, digest: string): boolean {
  const file = join(dir, path)
  if (digestOf(file) !== digest) return false // deleted, or replaced by other content
  rmSync(file)
  try {
    rmdirSync(dirname(file))
  } catch {
    // Other content has this name.
  }
  return true
}

/** SHA-256 of a file, hex; null when there is none that can be read. */
function digestOf(path: string): string | null {
  try {
    return readThrough(path, () => undefined)
  } catch {
    return null
  }
}

function readThrough(path: string, use: (piece: Buffer) => void): string {
  const fd = openSync(path, 'r')
  try {
    return digestOfOpenFile(fd, use)
  } finally {
    closeSync(fd)
  }
}

/** Reads paths with digests; with a stamp that cannot be read, no file here counts as ours. */
function readStamp(dir: string): Map<string, string> {
  try {
    const { files } = JSON.parse(readFileSync(join(dir, STAMP), 'utf8')) as { files?: unknown }
    const entries = typeof files === 'object' && files !== null ? Object.entries(files) : []
    return new Map(entries.filter(isOurs))
  } catch {
    return new Map()
  }
}

function isOurs(entry: [string, unknown]): entry is [string, string] {
  const [layout, name = '', file, ...more] = entry[0].split('/')
  const known = LAYOUTS.some((one) => one === layout) && file === 'all.zip' && more.length === 0
  return known && isFolderName(name) && typeof entry[1] === 'string'
}

function writeStamp(dir: string, digests: ReadonlyMap<string, string>): void {
  const files = Object.fromEntries([...digests].sort(([one], [other]) => (one < other ? -1 : 1)))
  replaceFile(join(dir, STAMP), (write) => write(Buffer.from(`${JSON.stringify({ files })}\n`)))
}
