import { type Fields, isObject } from './objects.ts'
import { ofName, plainName, resolveField } from './field-names.ts'

/*
 * Reads the package catalog's answers in any form (service API, payload gaps): the versions of a package, and the
 * architectures of a version. Members are found by the names of fields, as in everything that upstream sends.
 */

/** A version of a package, the architectures named with it, and everything that the answer states about it, as JSON. */
export interface Release {
  readonly version: string
  readonly archs: readonly string[]
  readonly stated: string
}

/** Parameters of package catalog paths from a listed package. */
export interface ListedRelease {
  readonly ecosystem: string
  readonly name: string
  readonly version: string | null
  readonly archs: readonly string[]
}

const MAX_DEPTH = 6
/** Maximum versions read of one package, far more than real ones have. */
const MAX_RELEASES = 10_000

/** Reads a listed package; null when it does not name its ecosystem or its name. */
export function listedRelease(item: Fields): ListedRelease | null {
  const ecosystem = firstText(item, ['ecosystem', 'package_ecosystem', 'pkg_ecosystem'])
  const name = firstText(item, ['name', 'package_name', 'pkg_name'])
  if (ecosystem === null || name === null) return null
  return { ecosystem, name, version: versionOf(item), archs: archsIn(item) }
}

/** Returns the versions in an answer of `…/versions`, each once, also when they are keys or nested. */
export function releasesIn(answer: unknown): Release[] {
  const found = new Map<string, { archs: Set<string>; stated: unknown[] }>()
  const add = (version: string, archs: readonly string[], entry: unknown): void => {
    if (version === '' || (found.size >= MAX_RELEASES && !found.has(version))) return
    const known = found.get(version) ?? { archs: new Set(), stated: [] }
    for (const arch of archs) known.archs.add(arch)
    known.stated.push(entry)
    found.set(version, known)
  }
  const collect = (value: unknown, depth: number): void => {
    if (depth > MAX_DEPTH) return
    if (Array.isArray(value)) {
      for (const inner of value)
        if (typeof inner === 'string' || typeof inner === 'number') add(String(inner), [], inner)
        else collect(inner, depth + 1)
    } else if (isObject(value)) {
      const version = versionOf(value)
      const before = found.size
      const isEntry = Object.keys(value).some((name) => plainName(name) === 'version')
      if (!isEntry) for (const inner of membersWithVersions(value)) collect(inner, depth + 1)
      // `latest_version` next to a list of versions is not an entry of its own.
      if (version !== null && found.size === before) add(version, archsIn(value), value)
    }
  }
  collect(answer, 0)
  return [...found].map(([version, { archs, stated }]) => {
    return { version, archs: [...archs], stated: JSON.stringify(stated) }
  })
}

/** Returns the architectures that an answer names, for example one of `…/details`. */
export function archsIn(answer: unknown): string[] {
  const found = new Set<string>()
  const collect = (value: unknown, named: boolean, depth: number): void => {
    if (depth > MAX_DEPTH) return
    if (typeof value === 'string') {
      if (named && value !== '' && value.length <= 100) found.add(value)
    } else if (Array.isArray(value)) for (const inner of value) collect(inner, named, depth + 1)
    else if (isObject(value))
      for (const [name, inner] of Object.entries(value))
        collect(inner, isArch(name) || (named && plainName(name) === 'name'), depth + 1)
  }
  collect(answer, false, 0)
  return [...found]
}

const ARCH_NAMES = ['arch', 'archs', 'architecture', 'architectures']

const isArch = ofName((name) => ARCH_NAMES.some((field) => resolveField(field, [name]).length > 0))

/**
 * Returns the members that can contain versions: objects and lists of objects, and of lists of texts the one named
 * versions, or the only one. The keys of an object named versions are versions.
 */
function membersWithVersions(value: Fields): unknown[] {
  const members = Object.entries(value)
  const keyed = members.flatMap(([name, inner]) =>
    isVersions(name) && isObject(inner) ? [Object.entries(inner).map(([version, more]) => ({ version, more }))] : [],
  )
  if (keyed.length > 0) return keyed
  const texts = members.filter(([, inner]) => Array.isArray(inner) && typeof inner[0] === 'string')
  const named = texts.filter(([name]) => isVersions(name))
  const rest = members.filter(([, inner]) => typeof inner === 'object' && inner !== null)
  const others = rest.filter(([name]) => !texts.some(([text]) => text === name))
  const lists = named.length > 0 || texts.length !== 1 || others.length > 0 ? named : texts
  return [...lists.filter(([name]) => !isArch(name)), ...others].map(([, inner]) => inner)
}

function isVersions(name: string): boolean {
  return resolveField('versions', [name]).length > 0
}

function versionOf(item: Fields): string | null {
  const [name] = resolveField('version', Object.keys(item))
  const value = name === undefined ? undefined : item[name]
  if (typeof value === 'number') return String(value)
  return typeof value === 'string' && value !== '' ? value : null
}

function firstText(item: Fields, names: readonly string[]): string | null {
  for (const wanted of names)
    for (const [name, value] of Object.entries(item))
      if (plainName(name) === plainName(wanted) && typeof value === 'string' && value !== '') return value
  return null
}
