import { recordedPackage } from '../identity/recorded.ts'
import { eachObject, fieldsOf } from '../json/objects.ts'

/** Which OSV records are mirrored (`osv.scope`): texts that name ecosystems or beginnings of ids. */
export interface ScopeSettings {
  readonly include: readonly string[]
  readonly exclude: readonly string[]
  /** Vendor prefixes of ecosystems (`views.vendors`): `npm` also names `Root:npm`. */
  readonly vendors: readonly string[]
}

/** What an id alone says: in scope, out of scope, or that the record's ecosystems decide. */
type Verdict = 'in' | 'out' | 'unknown'

/** A scope, ready to judge records. */
export interface OsvScope {
  /** The same text for the same settings; stored with each snapshot. */
  readonly text: string
  judgeId(id: string): Verdict
  /** Returns whether a record with this id is in scope; `record` is its parsed JSON. */
  includes(id: string, record: object): boolean
}

/** An entry of the settings. Ids and ecosystems are compared without regard to case. */
type Entry = { readonly prefix: string } | { readonly ecosystem: string }

/**
 * Parses an entry: one that ends with `-` or `*` is the beginning of ids (`GHSA-`, `ROOT-OS-ALPINE*`); any other is an
 * ecosystem with all its releases (`npm`, `Ubuntu`, `Ubuntu:22.04`). Null for text that can be neither.
 */
export function parseScopeEntry(text: string): Entry | null {
  const trimmed = text.trim().toLowerCase()
  if (!/^[^\p{C}*,]{1,200}\*?$/u.test(trimmed) || trimmed.endsWith(':')) return null
  if (trimmed.endsWith('*')) return { prefix: trimmed.slice(0, -1) }
  return trimmed.endsWith('-') ? { prefix: trimmed } : { ecosystem: trimmed }
}

/** Creates the scope of the settings; null when every record is in scope. */
export function createOsvScope({ include, exclude, vendors }: ScopeSettings): OsvScope | null {
  if (include.length + exclude.length === 0) return null
  const wanted = split(include)
  const unwanted = split(exclude)
  const prefixes = vendors.map((vendor) => `${vendor.toLowerCase()}:`)
  const names = (entries: Entries, ecosystem: string): boolean =>
    entries.ecosystems.some((one) => matches(one, ecosystem, prefixes))
  const judgeId = (id: string): Verdict => {
    const own = id.toLowerCase()
    const starts = (prefix: string): boolean => own.startsWith(prefix)
    if (unwanted.prefixes.some(starts)) return 'out'
    const named = include.length === 0 || wanted.prefixes.some(starts)
    if (named) return unwanted.ecosystems.length === 0 ? 'in' : 'unknown'
    return wanted.ecosystems.length === 0 ? 'out' : 'unknown'
  }
  return {
    text: scopeText({ include, exclude, vendors }),
    judgeId,
    includes(id, record) {
      const byId = judgeId(id)
      if (byId !== 'unknown') return byId === 'in'
      const all = ecosystemsOf(record)
      const left = all.filter((ecosystem) => !names(unwanted, ecosystem))
      if (all.length > 0 && left.length === 0) return false
      const own = id.toLowerCase()
      if (include.length === 0 || wanted.prefixes.some((prefix) => own.startsWith(prefix))) return true
      return left.some((ecosystem) => names(wanted, ecosystem))
    },
  }
}

/** Parses the text of a stored or imported scope; null for no scope, and for a text that is none. */
export function parseScopeText(text: string | null): ScopeSettings | null {
  if (text === null) return null
  try {
    const { include, exclude, vendors } = fieldsOf(JSON.parse(text))
    return isTexts(include) && isTexts(exclude) && isTexts(vendors) ? { include, exclude, vendors } : null
  } catch {
    return null
  }
}

function isTexts(value: unknown): value is readonly string[] {
  return Array.isArray(value) && value.every((one) => typeof one === 'string')
}

/** Returns the lists of a scope in words: `include npm; exclude GHSA-`. */
export function describeOsvScope({ include, exclude }: Omit<ScopeSettings, 'vendors'>): string {
  const lists = Object.entries({ include, exclude }).filter(([, entries]) => entries.length > 0)
  return lists.map(([name, entries]) => `${name} ${entries.join(', ')}`).join('; ')
}

function scopeText({ include, exclude, vendors }: ScopeSettings): string {
  const sorted = { include: [...include].sort(), exclude: [...exclude].sort() }
  return JSON.stringify({ ...sorted, vendors: [...vendors].sort() })
}

interface Entries {
  readonly prefixes: readonly string[]
  readonly ecosystems: readonly string[]
}

function split(texts: readonly string[]): Entries {
  const entries = texts.flatMap((text) => parseScopeEntry(text) ?? [])
  return {
    prefixes: entries.flatMap((entry) => ('prefix' in entry ? [entry.prefix] : [])),
    ecosystems: entries.flatMap((entry) => ('ecosystem' in entry ? [entry.ecosystem] : [])),
  }
}

/** Returns whether an ecosystem is the named one or a release of it, with or without a vendor prefix. */
function matches(named: string, ecosystem: string, vendorPrefixes: readonly string[]): boolean {
  const begins = (text: string): boolean => text === named || text.startsWith(`${named}:`)
  if (begins(ecosystem)) return true
  return vendorPrefixes.some((prefix) => ecosystem.startsWith(prefix) && begins(ecosystem.slice(prefix.length)))
}

/** Returns the ecosystems that a scope includes and none of those that are mirrored is, such as one that is written in another way. */
export function ecosystemsWithout({ include, vendors }: ScopeSettings, mirrored: readonly string[]): string[] {
  const prefixes = vendors.map((vendor) => `${vendor.toLowerCase()}:`)
  const known = mirrored.map((one) => one.toLowerCase())
  return include.filter((entry) => {
    const parsed = parseScopeEntry(entry)
    if (parsed === null || !('ecosystem' in parsed)) return false
    return !known.some((one) => matches(parsed.ecosystem, one, prefixes))
  })
}

/** Returns whether a scope takes every record of an ecosystem. */
export function takesAllOf({ include, exclude, vendors }: ScopeSettings, ecosystem: string): boolean {
  const prefixes = vendors.map((vendor) => `${vendor.toLowerCase()}:`)
  const asked = ecosystem.toLowerCase()
  const unwanted = split(exclude)
  const isTouched = unwanted.ecosystems.some((one) => matches(one, asked, prefixes) || matches(asked, one, prefixes))
  if (isTouched || unwanted.prefixes.length > 0) return false
  return include.length === 0 || split(include).ecosystems.some((one) => matches(one, asked, prefixes))
}

/** Returns whether a scope leaves out an ecosystem as a whole; false where ids decide, and where it takes some of its releases. */
export function leavesOut({ include, exclude, vendors }: ScopeSettings, ecosystem: string): boolean {
  const prefixes = vendors.map((vendor) => `${vendor.toLowerCase()}:`)
  const asked = ecosystem.toLowerCase()
  if (split(exclude).ecosystems.some((one) => matches(one, asked, prefixes))) return true
  const wanted = split(include)
  if (include.length === 0 || wanted.prefixes.length > 0) return false
  return !wanted.ecosystems.some((one) => matches(one, asked, prefixes) || matches(asked, one, prefixes))
}

/** Returns the ecosystems that a record names, in lower case; malformed ones are ignored. */
export function ecosystemsOf(record: object): string[] {
  return eachObject(fieldsOf(record)['affected']).flatMap((affected) => {
    const ecosystem = recordedPackage(affected)?.ecosystem ?? fieldsOf(affected['package'])['ecosystem']
    return typeof ecosystem === 'string' && ecosystem !== '' ? [ecosystem.toLowerCase()] : []
  })
}
