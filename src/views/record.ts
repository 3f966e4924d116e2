import { COMMITS, NO_ECOSYSTEM, folderOf, packageKey } from '../store/views-names.ts'
import { replaceEcosystems } from './derive.ts'
import { stripPrefix } from './ecosystems.ts'
import { instantOf } from './instant.ts'

/** Folders of the bucket, each with the names of the packages that a record names in it. */
export type Folders = ReadonlyMap<string, ReadonlySet<string>>

/** What views are made from of one record. */
export interface Analysis {
  /** When it was modified, as `instantOf` says it. */
  readonly instant: string
  /** Where it lies in upstream's bytes: at least one folder. */
  readonly folders: Folders
  /** Its form without vendor prefixes and where that lies; null when it has none. No folder is in both. */
  readonly derived: {
    readonly content: Buffer
    readonly folders: Folders
    /** The prefixes that were taken off, in the order of their names. */
    readonly prefixes: readonly string[]
  } | null
}

/**
 * Reads a record as osv.dev's exporter does: it lies in the folder of each ecosystem that it names, in `GIT` when it has
 * a range of commits, and in `[EMPTY]` when it has neither. `stamp` is the index's `modified`, for a record that has none that
 * can be read. Never throws: what is no record by its form names no ecosystem.
 */
export function analyse(bytes: Buffer, stamp: string, withDerived: boolean): Analysis {
  const content = bytes.subarray(bytes.indexOf(MARK) === 0 ? MARK.length : 0)
  const record = parse(content)
  const affected: unknown[] = Array.isArray(record.affected) ? record.affected : []
  const instant = instantOf(record.modified) || instantOf(stamp)
  const stripped = affected.map((one) => (withDerived ? stripPrefix(ecosystemOf(one)) : null))
  const named = affected.map(ecosystemOf)
  const folders = foldersOf(affected, named)
  if (folders.size > MOST_FOLDERS) return { instant, folders: NOWHERE, derived: null }
  const prefixes = new Set(stripped.flatMap((one) => one?.prefix ?? []))
  if (prefixes.size === 0) return { instant, folders, derived: null }
  const bases = new Set(stripped.flatMap((one) => (one === null ? [] : folderOf(one.ecosystem))))
  const changed = stripped.map((one) => one?.ecosystem ?? null)
  const inDerived = foldersOf(
    affected,
    named.map((ecosystem, i) => changed[i] ?? ecosystem),
  )
  return {
    instant,
    folders: only(folders, (folder) => !bases.has(folder)),
    derived: {
      content: replaceEcosystems(content, record, changed),
      folders: only(inDerived, (folder) => bases.has(folder)),
      prefixes: [...prefixes].sort(),
    },
  }
}

const MARK = Buffer.from('\ufeff')
/** Each folder costs files: a record that names more ecosystems than there are lies in none. */
const MOST_FOLDERS = 100
const NOWHERE: Folders = new Map([[NO_ECOSYSTEM, new Set<string>()]])
/** Longer than any ecosystem's name, characters. */
const LONGEST_NAME = 200

interface Parsed {
  readonly affected?: unknown
  readonly modified?: unknown
}

function parse(content: Buffer): Parsed {
  try {
    return objectOf<Parsed>(JSON.parse(content.toString('utf8')))
  } catch {
    return {}
  }
}

/** What an affected package may have, of whatever type. */
interface Affected {
  readonly package?: unknown
  readonly ranges?: unknown
}

interface Named {
  readonly ecosystem?: unknown
  readonly name?: unknown
}

/** A value as an object of which nothing is known; without members when it is none. */
function objectOf<T extends object>(value: unknown): Partial<T> {
  return typeof value === 'object' && value !== null && !Array.isArray(value) ? value : {}
}

function packageOf(affected: unknown): Partial<Named> {
  return objectOf<Named>(objectOf<Affected>(affected).package)
}

/** The ecosystem of an affected package as it is written; empty for none, and for what cannot be the name of one. */
function ecosystemOf(affected: unknown): string {
  const { ecosystem } = packageOf(affected)
  if (typeof ecosystem !== 'string' || ecosystem.length > LONGEST_NAME) return ''
  return /\p{Cc}/u.test(ecosystem) ? '' : ecosystem // names are listed one a line
}

function foldersOf(affected: readonly unknown[], ecosystems: readonly string[]): Folders {
  const folders = new Map<string, Set<string>>()
  const folder = (name: string): Set<string> => {
    const known = folders.get(name) ?? new Set()
    folders.set(name, known)
    return known
  }
  for (const [i, one] of affected.entries()) {
    const ecosystem = ecosystems[i] ?? ''
    const name = folderOf(ecosystem)
    const key = nameOf(one)
    if (name !== '' && key === null) folder(name)
    else if (name !== '' && key !== null) folder(name).add(packageKey(ecosystem, key))
    if (hasCommits(one)) folder(COMMITS)
  }
  if (folders.size === 0) folder(NO_ECOSYSTEM)
  return folders
}

function nameOf(affected: unknown): string | null {
  const { name } = packageOf(affected)
  return typeof name === 'string' ? name : null
}

function hasCommits(affected: unknown): boolean {
  const { ranges } = objectOf<Affected>(affected)
  const isOfCommits = (range: unknown) => objectOf<{ type: unknown }>(range).type === 'GIT'
  return Array.isArray(ranges) && ranges.some(isOfCommits)
}

function only(folders: Folders, wanted: (folder: string) => boolean): Folders {
  return new Map([...folders].filter(([name]) => wanted(name)))
}
