import { existsSync, readFileSync, statSync, writeFileSync } from 'node:fs'
import { join } from 'node:path'
import { MirrorError, messageOf, systemCode } from '../../../base/errors.ts'
import { integerField, listField, members, orAbsent, text } from '../../../base/json/shapes.ts'
import { derivedDir } from '../../../store/database/open.ts'
import { PRIVATE_FILE, replacePrivateFile } from '../../../base/files.ts'

/** What is built for scanners from the mirrored data: `osv` from the OSV records, `vex` from the VEX documents. */
export type ViewsKind = 'osv' | 'vex'

/** Returns the folder of all generations of views; safe to delete while nothing runs. */
export function viewsDir(dataDir: string): string {
  return join(derivedDir(dataDir), 'views')
}

/** Returns the folder of a generation. */
export function generationDir(dataDir: string, name: string): string {
  return join(viewsDir(dataDir), name)
}

/** Returns the database of an OSV generation. */
export function viewsPath(folder: string): string {
  return join(folder, 'views.db')
}

/** The served generation. */
interface CurrentViews {
  readonly name: string
  /** The last snapshot that it was found to show. */
  readonly snapshot: string
  /** What it was made by beside that; '': its name says it. */
  readonly basis: string
  /** Upstream's date of that snapshot, Unix milliseconds. */
  readonly asOf: number
  /** Served since, Unix milliseconds. */
  readonly since: number
}

/**
 * Returns the served generation; null before the first, if its folder was deleted, if it was found damaged, and if the pointer to it is not
 * whole or cannot be read.
 */
export function readCurrentViews(dataDir: string, kind: ViewsKind): CurrentViews | null {
  try {
    const named = readNamedViews(dataDir, kind)
    return named === null || damageIn(generationDir(dataDir, named.name)) !== null ? null : named
  } catch {
    return null // `readDamage` says why
  }
}

/** Says in a generation's folder what of it is damaged. It goes with the folder, when the generation is made again. */
const DAMAGE_FILE = 'damaged'

/**
 * Notes that a generation is damaged: nothing reads it from now on, and a daemon makes it again. Where that cannot be written, only
 * who found it knows it.
 */
export function noteDamage(folder: string, fault: string): void {
  try {
    writeFileSync(join(folder, DAMAGE_FILE), fault, { mode: PRIVATE_FILE })
  } catch {
    // another user's folder, or a full disk
  }
}

/** Returns what was found damaged of the generation that would be served, or why that is not known; null: nothing, or there is none. */
export function readDamage(dataDir: string, kind: ViewsKind): string | null {
  try {
    const named = readNamedViews(dataDir, kind)
    return named === null ? null : damageIn(generationDir(dataDir, named.name))
  } catch (error) {
    return messageOf(error) // another user's folder, or a disk that fails
  }
}

function damageIn(folder: string): string | null {
  const path = join(folder, DAMAGE_FILE)
  if (!existsSync(path)) return null
  try {
    return readFileSync(path, 'utf8')
  } catch {
    return 'they are damaged' // another user found it
  }
}

/** Returns the generation that the pointer names, also a damaged one. Throws the system's error where that cannot be read. */
export function readNamedViews(dataDir: string, kind: ViewsKind): CurrentViews | null {
  const pointer = pointerPath(dataDir, kind)
  try {
    const [name = '', snapshot = '', date = '', basis = ''] = readFileSync(pointer, 'utf8').split('\n')
    if (!GENERATION.test(name) || !/^\d+$/.test(date) || !existsSync(generationDir(dataDir, name))) return null
    return { name, snapshot, basis, asOf: Number(date), since: statSync(pointer).mtimeMs }
  } catch (error) {
    if (systemCode(error) === 'ENOENT') return null
    throw error
  }
}

/** Makes a generation the served one. The file is replaced atomically. */
export function replaceCurrentViews(
  dataDir: string,
  kind: ViewsKind,
  { name, snapshot, basis = '', asOf }: Omit<CurrentViews, 'since' | 'basis'> & { readonly basis?: string },
): void {
  const path = pointerPath(dataDir, kind)
  replacePrivateFile(path, `${name}\n${snapshot}\n${asOf}\n${basis}\n`)
}

/** Names of generations: their kind, and a digest of their input as 32 hex digits. */
export const GENERATION = /^(osv|vex)-[\da-f]{32}$/

function pointerPath(dataDir: string, kind: ViewsKind): string {
  return join(viewsDir(dataDir), `current-${kind}`)
}

/** Folder of osv.dev's bucket for records without an ecosystem. */
export const NO_ECOSYSTEM = '[EMPTY]'

/** Folder that also contains the records with a range of commits, whatever package they name. */
export const COMMITS = 'GIT'

/** Returns the folder of an ecosystem in osv.dev's bucket: the part before the first colon (`Debian` of `Debian:12`). */
export function folderOf(ecosystem: string): string {
  const colon = ecosystem.indexOf(':')
  return colon < 0 ? ecosystem : ecosystem.slice(0, colon)
}

/** Description of the VEX repository in a generation's folder. */
export interface VexInfo {
  /** Name of the archive in the folder. */
  readonly file: string
  readonly size: number
  /** Hex. */
  readonly sha256: string
  readonly crc32c: number
  /** Last-Modified, unix seconds. */
  readonly changed: number
  readonly documents: number
  readonly packages: number
  /** Digests of the documents that are not in it since they were damaged when it was made; missing: none. */
  readonly unread?: readonly string[]
  /** The file that says what the archive was made of, and where its last line begins; missing: it is made from the beginning. */
  readonly sources?: { readonly file: string; readonly size: number; readonly last: number }
}

/** The VEX repository of a generation: its archive, and the catalog's snapshot that it shows. */
export interface VexGeneration extends VexInfo {
  /** Folder of the generation. */
  readonly folder: string
  readonly snapshot: string
  /** Upstream's date of the VEX in that snapshot, unix milliseconds. */
  readonly asOf: number
}

/** The file in a generation's folder that describes its content; written last. */
export const VEX_FILE = 'repository.json'

/** Returns the VEX repository in use; null before the first. Throws `corrupt` for a damaged one. */
export function readVexGeneration(dataDir: string): VexGeneration | null {
  const current = readCurrentViews(dataDir, 'vex')
  if (current === null) return null
  const { name, snapshot, asOf } = current
  const folder = generationDir(dataDir, name)
  const info = readVexInfo(folder)
  return info === null ? null : { ...info, folder, snapshot, asOf }
}

/** Returns which documents the VEX repository in use lacks since they were damaged when it was made. */
export function unreadVexIn(dataDir: string): readonly string[] {
  const current = readCurrentViews(dataDir, 'vex')
  try {
    const info = current === null ? null : readVexInfo(generationDir(dataDir, current.name))
    return info?.unread ?? []
  } catch {
    return [] // who reads the repository finds out, and has it made again
  }
}

/** Reads the description in a generation's folder; null if there is none. Throws `corrupt`. */
export function readVexInfo(folder: string): VexInfo | null {
  try {
    return vexInfo(JSON.parse(readFileSync(join(folder, VEX_FILE), 'utf8')), VEX_FILE)
  } catch (error) {
    if (systemCode(error) === 'ENOENT') return null
    throw new MirrorError('corrupt', 'the VEX repository cannot be read', { cause: error })
  }
}

/** The last date in seconds; the first one is as long before 1970. */
const LAST_DATE = 8.64e12

const vexInfo = members<VexInfo>({
  file: text,
  size: integerField(0),
  sha256: text,
  crc32c: integerField(0),
  changed: integerField(-LAST_DATE, LAST_DATE),
  documents: integerField(0),
  packages: integerField(0),
  unread: orAbsent(listField(text, Infinity)),
  sources: orAbsent(
    members<NonNullable<VexInfo['sources']>>({ file: text, size: integerField(0), last: integerField(0) }),
  ),
})
