import { closeSync, lstatSync, openSync, readFileSync, rmSync, rmdirSync } from 'node:fs'
import { dirname, join } from 'node:path'
import { digestOfOpenFile, digestOfPieces } from '../../../base/digest.ts'
import { MirrorError, systemCode } from '../../../base/errors.ts'
import { makeFolder, replaceFile } from '../../../base/files.ts'
import { eachObject, fieldsOf, isObject, jsonTextOf } from '../../../base/json/objects.ts'
import { isWithdrawn } from '../records/affected.ts'
import { normalName } from '../../../base/identity/names.ts'
import type { Views } from '../store/reads.ts'

/** Where osv-scanner up to 2.4 and osv-scalibr look for their databases, below one folder. */
const LAYOUTS = ['osv-scanner', 'osv-scalibr'] as const

/** Whose databases can be written; osv-offline reads those of Renovate. */
export const DATABASE_KINDS = ['osv-scanner', 'renovate'] as const
type DatabaseKind = (typeof DATABASE_KINDS)[number]
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
 * Writes the records of the views as scanners keep them on disk: each file is replaced as a whole and on the disk before
 * it has its name; one that has the right content stays untouched. `ecosystems`: none means all, and then what was
 * written for one that is gone is removed. Throws `usage` for an ecosystem that is not there, `storage` for a folder that
 * cannot be written, and for one below `dir` that is a link, `corrupt` for damaged views.
 */
export function exportDb(
  views: Views,
  dir: string,
  ecosystems: readonly string[],
  kind: DatabaseKind = 'osv-scanner',
): ExportDbReport {
  try {
    return writeAll(views, dir, ecosystems, kind)
  } catch (error) {
    const code = systemCode(error)
    if (error instanceof MirrorError || code === undefined) throw error
    const advice = 'name a folder that this user may write, on a disk with space'
    throw new MirrorError('storage', `cannot write to ${dir} (${code}): ${advice}`, { cause: error })
  }
}

/** A file of a database. */
interface DbFile {
  /** Below the folder. */
  readonly path: string
  /** SHA-256 of the content, hex. */
  readonly sha256: string
  /** Writes the content. Throws `corrupt` for damaged views. */
  readonly fill: (write: (piece: Uint8Array) => void) => void
}

function writeAll(views: Views, dir: string, ecosystems: readonly string[], kind: DatabaseKind): ExportDbReport {
  const names = chosen(views, ecosystems, kind)
  const before = readStamp(dir)
  makeFolder(dir)
  const files = names.filter(isFolderName).flatMap((name) => filesOf(views, name, kind))
  const digests = new Map(files.map(({ path, sha256 }) => [path, sha256] as const))
  for (const path of [...digests.keys(), ...before.keys()]) refuseLinks(dir, path)
  writeStamp(dir, new Map([...before, ...digests])) // before any file, so that every written file is recorded
  const written = files.flatMap((file) => (place(dir, file) ? [file.path] : []))
  const ours = [...before].filter(([path]) => isRenovates(path) === (kind === 'renovate'))
  const gone = ecosystems.length > 0 ? [] : ours.filter(([path]) => !digests.has(path))
  const removed = gone.flatMap(([path, digest]) => (remove(dir, path, digest) ? [path] : []))
  const kept = [...before].filter(([path]) => gone.every(([other]) => other !== path))
  writeStamp(dir, new Map([...kept, ...digests]))
  const skipped = names.filter((name) => !isFolderName(name))
  return { written, kept: files.length - written.length, removed, skipped }
}

function filesOf(views: Views, name: string, kind: DatabaseKind): DbFile[] {
  return kind === 'renovate' ? [renovateDb(views, name)] : scannerDbs(views, name)
}

function renovateDb(views: Views, name: string): DbFile {
  return {
    path: renovateFile(name),
    sha256: digestOfPieces(renovateLines(views, name)),
    fill(write) {
      for (const line of renovateLines(views, name)) write(line)
    },
  }
}

function scannerDbs(views: Views, name: string): DbFile[] {
  const { file, size, sha256 } = assetOf(views, name)
  const fill: DbFile['fill'] = (write) => {
    const copied = readThrough(join(views.folder, file), write)
    if (copied !== sha256) throw new MirrorError('corrupt', `the archive of ${name} is not the ${size} bytes it was`)
  }
  return LAYOUTS.map((layout) => ({ path: join(layout, name, 'all.zip'), sha256, fill }))
}

/** Throws when a path below the named folder is a link: writing there would replace files outside of it. */
function refuseLinks(dir: string, path: string): void {
  const folders = path.split('/').slice(0, -1)
  for (const [at] of folders.entries()) {
    const folder = join(dir, ...folders.slice(0, at + 1))
    const found = lstatSync(folder, { throwIfNoEntry: false })
    if (found?.isDirectory() !== false) continue
    const what = found.isSymbolicLink() ? 'a symbolic link' : 'no folder'
    const advice = 'remove it, or name the folder that it leads to'
    throw new MirrorError('storage', `${folder} is ${what}: ${advice}; nothing was written`)
  }
}

function chosen(views: Views, ecosystems: readonly string[], kind: DatabaseKind): string[] {
  const all = views.listViews().map(({ name }) => name)
  const known = kind === 'renovate' ? all.filter((name) => RENOVATE_ECOSYSTEMS.includes(name)) : all
  const unknown = ecosystems.filter((name) => !known.includes(name))
  if (unknown.length === 0) return ecosystems.length === 0 ? known : [...new Set(ecosystems)]
  const have = known.length === 0 ? 'there are none yet' : `there are: ${known.join(', ')}`
  const wanted = kind === 'renovate' ? 'no record that Renovate reads' : 'no record'
  throw new MirrorError('usage', `${wanted} names the ecosystem ${unknown.join(', ')}; ${have}`)
}

/** Upstream decides what ecosystems are called: none may lead out of the folder. */
function isFolderName(name: string): boolean {
  return name !== '.' && name !== '..' && !/[/\\\p{Cc}]/u.test(name) && Buffer.byteLength(name) < 200
}

function assetOf(views: Views, name: string) {
  const asset = views.readAsset(`${name}/all.zip`)
  if (asset === null) throw new MirrorError('corrupt', `the views have no archive of ${name}`)
  return asset
}

/** True when the file had to be written. */
function place(dir: string, { path, sha256, fill }: DbFile): boolean {
  const file = join(dir, path)
  if (digestOf(file) === sha256) return false
  makeFolder(dirname(file))
  replaceFile(file, fill)
  return true
}

function remove(dir: string, path: string, digest: string): boolean {
  const file = join(dir, path)
  if (digestOf(file) !== digest) return false // deleted, or replaced by other content
  rmSync(file)
  if (isRenovates(path)) return true // it has no folder of its own
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

/** Whether a path is that of a database of Renovate. */
function isRenovates(path: string): boolean {
  return RENOVATE_ECOSYSTEMS.some((name) => renovateFile(name) === path)
}

function isOurs(entry: [string, unknown]): entry is [string, string] {
  if (isRenovates(entry[0])) return typeof entry[1] === 'string'
  const [layout, name = '', file, ...more] = entry[0].split('/')
  const known = LAYOUTS.some((one) => one === layout) && file === 'all.zip' && more.length === 0
  return known && isFolderName(name) && typeof entry[1] === 'string'
}

function writeStamp(dir: string, digests: ReadonlyMap<string, string>): void {
  const files = Object.fromEntries([...digests].sort(([one], [other]) => (one < other ? -1 : 1)))
  replaceFile(join(dir, STAMP), (write) => write(Buffer.from(`${JSON.stringify({ files })}\n`)))
}

/** Ecosystems that osv-offline knows, with the types of the package URLs by which it compares. */
const TYPES = new Map([
  ['Go', 'golang'],
  ['Hackage', 'hackage'],
  ['Hex', 'hex'],
  ['Maven', 'maven'],
  ['NuGet', 'nuget'],
  ['Packagist', 'composer'],
  ['Pub', 'pub'],
  ['PyPI', 'pypi'],
  ['RubyGems', 'gem'],
  ['crates.io', 'cargo'],
  ['npm', 'npm'],
])

/** Names of the ecosystems of which osv-offline, and so Renovate, reads a database. */
const RENOVATE_ECOSYSTEMS: readonly string[] = [...TYPES.keys()]

/** Returns the file that osv-offline reads for an ecosystem, below its root directory. */
function renovateFile(ecosystem: string): string {
  return `${ecosystem.toLowerCase()}.nedb`
}

/**
 * Returns the file of an ecosystem line by line: each record as its view shows it, which is not withdrawn (osv-offline gives those
 * as well). Throws `corrupt` for damaged views.
 */
function* renovateLines(views: Views, ecosystem: string): Generator<Buffer> {
  for (const { content } of views.eachViewRecord(ecosystem)) {
    const line = lineOf(JSON.parse(jsonTextOf(content)), ecosystem)
    if (line !== null) yield Buffer.from(`${line}\n`)
  }
}

/** Two signs that JSON leaves as they are end a line for the reader of osv-offline, which then skips the record in silence. */
const LINE_ENDS = /[\u2028\u2029]/g

function lineOf(record: unknown, ecosystem: string): string | null {
  if (!isObject(record) || isWithdrawn(record)) return null
  const affected = eachObject(record['affected']).flatMap((entry) => namedEntries(entry, ecosystem))
  const text = JSON.stringify({ ...record, affected })
  return text.replace(LINE_ENDS, (sign) => `\\u${sign.charCodeAt(0).toString(16)}`)
}

/** Names a package as osv-offline compares it: by the package URL, and by the very name, which Renovate normalises for PyPI. */
function namedEntries(entry: object, ecosystem: string): object[] {
  const named = fieldsOf(fieldsOf(entry)['package'])
  const { name, ecosystem: recorded } = named
  if (typeof name !== 'string' || typeof recorded !== 'string') return [entry]
  if (recorded !== ecosystem && !recorded.startsWith(`${ecosystem}:`)) return [entry]
  const names = new Set([name, normalName(ecosystem, name)])
  return [...names].map((one) => ({
    ...entry,
    package: { ...named, name: one, purl: purlOf(ecosystem, one) },
  }))
}

function purlOf(ecosystem: string, name: string): string {
  const path = ecosystem === 'Maven' ? name.replace(':', '/') : name
  return `pkg:${TYPES.get(ecosystem) ?? ''}/${path.split('/').map(encodeURIComponent).join('/')}`
}
