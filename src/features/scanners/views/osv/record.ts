import { eachObject, fieldsOf, isObject, jsonTextOf } from '../../../../base/json/objects.ts'
import { recordedPackage } from '../../../../base/identity/recorded.ts'
import { normalName, packageKey } from '../../../../base/identity/names.ts'
import { COMMITS, NO_ECOSYSTEM, folderOf } from '../../store/generations.ts'
import { type PackageChange, type Stripped, changeAffected, isKnownEcosystem, stripPrefix } from './ecosystems.ts'
import { findEcosystem } from '../../../../base/versions/ecosystems.ts'
import { instantOf } from '../../../../base/time.ts'
import { purlNames } from '../../../../base/identity/package.ts'
import { writePurl } from '../../../../base/identity/purl.ts'
import { confirmedEvents } from '../../records/ranges.ts'
import { orderOfType } from '../../../../base/versions/semver.ts'

/** Folders of the bucket, each with the names of the packages that a record names in it. */
export type Folders = ReadonlyMap<string, ReadonlySet<string>>

/** What views are made from of one record. */
interface Analysis {
  /** When it was modified, in the form of `instantOf`. */
  readonly instant: string
  /** Folders that contain upstream's bytes: at least one. */
  readonly folders: Folders
  /** Its form without vendor prefixes, and the folders of that; null when it has none. No folder is in both. */
  readonly derived: {
    readonly content: Buffer
    readonly folders: Folders
    /** The prefixes that were taken off, in the order of their names. */
    readonly prefixes: readonly string[]
  } | null
  /** It is malformed, or names an invalid ecosystem or package: these names are ignored. */
  readonly malformed: boolean
  /** Other ids that it names, in upper case. */
  readonly aliases: readonly string[]
  /** The ecosystems that it names in any of its forms, such as `Debian:12`. */
  readonly ecosystems: readonly string[]
}

/**
 * Analyses a record as osv.dev's exporter does: it belongs to the folder of each ecosystem that it names, to `GIT` when it
 * has a range of commits, and to `[EMPTY]` when it has neither. `stamp` is the index's `modified`, for a record without a valid
 * one. `vendors`: their prefixes are removed. `isFolder`: the permitted folders, where there are too many. Never throws: a
 * malformed record, or one that cannot be processed (such as one that is nested too deeply), names no ecosystem.
 */
export function analyse(
  bytes: Buffer,
  stamp: string,
  vendors: ReadonlySet<string>,
  isFolder: (name: string) => boolean = () => true,
): Analysis {
  const content = bytes.subarray(bytes.subarray(0, MARK.length).equals(MARK) ? MARK.length : 0)
  const nowhere = { folders: NOWHERE, derived: null, malformed: true, ecosystems: [] }
  const record = parse(content)
  if (record === null) return { ...nowhere, instant: instantOf(stamp), aliases: [] }
  const aliases = aliasesOf(record)
  const instant = instantOf(record.modified) || instantOf(stamp)
  try {
    const placed = keepTo(place(content, record, vendors), isFolder)
    return { ...placed, instant, aliases }
  } catch {
    return { ...nowhere, instant, aliases }
  }
}

type Placed = Omit<Analysis, 'instant' | 'aliases'>

/** Largest number of other ids of a record that are indexed, and their longest, characters. */
const MOST_ALIASES = 1000
const LONGEST_ALIAS = 200

/** Returns the ids in the fields that OSV has for them, in upper case, each once. */
function aliasesOf({ aliases, related, upstream }: Parsed): string[] {
  const named: unknown[] = [aliases, upstream, related].flatMap((one): unknown[] => (Array.isArray(one) ? one : []))
  const usable = named.slice(0, MOST_ALIASES).filter((one) => typeof one === 'string')
  const fit = usable.filter((one) => one.length <= LONGEST_ALIAS && one.isWellFormed())
  return [...new Set(fit.map((one) => one.toUpperCase()))]
}

/** Of the ecosystems of a record that names more than there are, those count that the OSV schema knows. */
function place(content: Buffer, record: Parsed, vendors: ReadonlySet<string>): Placed {
  const affected: unknown[] = Array.isArray(record.affected) ? record.affected : []
  const all = affected.map(ecosystemOf)
  const isTooMany = new Set(all.map(folderOf)).size > MOST_FOLDERS
  const isKnown = (one: string): boolean => isKnownEcosystem(folderOf(one)) || findEcosystem(one) !== null
  const isCounted = (one: string): boolean => !isTooMany || isKnown(one) || vendors.has(folderOf(one))
  const named = all.map((one) => (isCounted(one) ? one : ''))
  const stripped = named.map((ecosystem) => stripPrefix(ecosystem, vendors))
  const folders = foldersOf(affected, named)
  const malformed = isTooMany || affected.some((one) => isMalformed(packageOf(one)) || isUnnamed(one))
  const prefixes = new Set(stripped.flatMap((one) => one?.prefix ?? []))
  const shown = stripped.flatMap((one) => one?.ecosystems ?? [])
  const ecosystems = [...new Set([...named, ...shown])].filter((one) => one !== '')
  if (prefixes.size === 0) return { folders, derived: null, malformed, ecosystems }
  const bases = new Set(stripped.flatMap((one) => one?.base ?? []))
  const changes = affected.map((one, i) => changeOf(one, named[i] ?? '', stripped[i] ?? null))
  const inDerived = foldersOf(
    affected,
    named.map((ecosystem, i) => stripped[i]?.ecosystems[0] ?? ecosystem),
  )
  return {
    folders: only(folders, (folder) => !bases.has(folder)),
    derived: {
      content: changeAffected(content, record, changes),
      folders: only(inDerived, (folder) => bases.has(folder)),
      prefixes: [...prefixes].sort(),
    },
    malformed,
    ecosystems,
  }
}

/** Removes folders that are not permitted; a record in no other folder belongs to `[EMPTY]`. */
function keepTo(placed: Placed, isFolder: (name: string) => boolean): Placed {
  const { derived } = placed
  const names = [...placed.folders.keys(), ...(derived?.folders.keys() ?? [])]
  if (names.every(isFolder)) return placed
  const folders = only(placed.folders, isFolder)
  const inDerived = only(derived?.folders ?? NONE, isFolder)
  return {
    folders: folders.size === 0 ? NOWHERE : folders, // upstream's bytes are in at least one folder
    derived: derived === null || inDerived.size === 0 ? null : { ...derived, folders: inDerived },
    malformed: true,
    ecosystems: placed.ecosystems,
  }
}

const MARK = Buffer.from('\ufeff')
/** Most folders of a record: each costs files. */
const MOST_FOLDERS = 100
const NONE: Folders = new Map()
const NOWHERE: Folders = new Map([[NO_ECOSYSTEM, new Set<string>()]])
/** Longer than any ecosystem's name, characters; and than any package's. */
const LONGEST_NAME = 200
const LONGEST_PACKAGE = 4096

interface Parsed {
  readonly affected?: unknown
  readonly modified?: unknown
  readonly aliases?: unknown
  readonly related?: unknown
  readonly upstream?: unknown
}

function parse(content: Buffer): Parsed | null {
  try {
    const value: unknown = JSON.parse(jsonTextOf(content))
    return isObject(value) ? value : null
  } catch {
    return null
  }
}

/** The fields of an affected package, of any type. */
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

/** The ecosystem of an affected package, in the case of the OSV schema; empty for none, and for what cannot be the name of one. */
function ecosystemOf(affected: unknown): string {
  const ecosystem = recordedPackage(fieldsOf(affected))?.ecosystem ?? packageOf(affected).ecosystem
  return typeof ecosystem === 'string' && isEcosystem(ecosystem) ? ecosystem : ''
}

/** Names are listed one a line; and lone surrogates, which differ here, are one text in a database. */
function isEcosystem(text: string): boolean {
  return text.length <= LONGEST_NAME && text.isWellFormed() && !/\p{Cc}/u.test(text)
}

function isName(text: string): boolean {
  return text.length <= LONGEST_PACKAGE && text.isWellFormed()
}

function isMalformed({ ecosystem, name }: Partial<Named>): boolean {
  return (typeof ecosystem === 'string' && !isEcosystem(ecosystem)) || (typeof name === 'string' && !isName(name))
}

/** Whether an element names neither a package nor commits: then it is not known what it is about. */
function isUnnamed(affected: unknown): boolean {
  return recordedPackage(fieldsOf(affected)) === null && !hasCommits(affected)
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
  const name = recordedPackage(fieldsOf(affected))?.name
  return name !== undefined && isName(name) ? name : null
}

function hasCommits(affected: unknown): boolean {
  const { ranges } = objectOf<Affected>(affected)
  const isOfCommits = (range: unknown) => objectOf<{ type: unknown }>(range).type === 'GIT'
  return Array.isArray(ranges) && ranges.some(isOfCommits)
}

function only(folders: Folders, wanted: (folder: string) => boolean): Folders {
  return new Map([...folders].filter(([name]) => wanted(name)))
}

/**
 * What becomes of an affected package in a derived record: its ecosystems without the vendor's prefix; a package URL that
 * names it there (Dependency-Track passes over packages without one), as the OSV schema has it: without version and
 * qualifiers; and of a range whose upper bound its ecosystem cannot read, only what another bound confirms, for some
 * scanners take such a bound for none. `ecosystem` is the recorded one, '' for none. Null: nothing.
 */
function changeOf(affected: unknown, ecosystem: string, stripped: Stripped | null): PackageChange | null {
  const { package: named, ranges } = fieldsOf(affected)
  const base = stripped?.base ?? folderOf(ecosystem)
  const purl = purlFor(base, fieldsOf(named))
  if (stripped !== null) return { ecosystems: stripped.ecosystems, purl, events: eventsOf(ranges, ecosystem) }
  return purl === null ? null : { ecosystems: [ecosystem], purl, events: [] }
}

/** Packages that are remembered: many records name the same. */
const REMEMBERED = { packages: 2_000, characters: 300 }
const written = new Map<string, string | null>()

/** Null where the record has one that names this package already, and where there is none for the ecosystem. */
function purlFor(base: string, { name, purl }: Readonly<Record<string, unknown>>): string | null {
  if (typeof name !== 'string') return null
  const recorded = typeof purl === 'string' ? purl : ''
  const key = `${base.length} ${name.length} ${base}${name}${recorded}`
  const known = written.get(key)
  if (known !== undefined) return known
  const made = makePurl(base, name, recorded)
  if (written.size >= REMEMBERED.packages) written.clear()
  if (key.length <= REMEMBERED.characters) written.set(key, made)
  return made
}

function makePurl(base: string, name: string, purl: string): string | null {
  const named = purl === '' ? null : purlNames(purl)
  const known = named?.ecosystem === base && normalName(base, named.name) === normalName(base, name)
  return known ? null : writePurl(base, name)
}

function eventsOf(ranges: unknown, ecosystem: string): PackageChange['events'] {
  const own = findEcosystem(ecosystem)?.order ?? null
  const list: unknown[] = Array.isArray(ranges) ? ranges : []
  return list.map((range) => {
    const { type, events, database_specific: specific } = fieldsOf(range)
    const order = orderOfType(type, own)
    // what is left out is said there
    return order === null || specific !== undefined ? null : confirmedEvents([...eachObject(events)], order)
  })
}
