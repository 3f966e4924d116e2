import { type Fields, eachObject, fieldsOf, isObject, textOfJson } from '../../../base/json/objects.ts'

/** Names of entries that differ between two versions of a document, each list in order. */
export interface EntryDifference {
  readonly removed: readonly string[]
  readonly changed: readonly string[]
  readonly added: readonly string[]
}

/** Compares two versions by their entries: names with opaque texts that differ whenever the entry differs. */
export function compareEntries(
  before: Iterable<readonly [name: string, text: string]>,
  after: ReadonlyMap<string, string>,
): EntryDifference {
  const found = { removed: [] as string[], changed: [] as string[] }
  const seen = new Set<string>()
  for (const [name, text] of before) {
    seen.add(name)
    const now = after.get(name)
    if (now === undefined) found.removed.push(name)
    else if (now !== text) found.changed.push(name)
  }
  const added = [...after.keys()].filter((name) => !seen.has(name))
  return { removed: found.removed.sort(), changed: found.changed.sort(), added: added.sort() }
}

/** Returns the entries of an index of records: each id with its stamp. */
export function entriesOfIndex(value: unknown): Map<string, string> {
  const entries = new Map<string, string>()
  for (const { id, modified } of eachObject(value))
    if (typeof id === 'string') entries.set(id, typeof modified === 'string' ? modified : '')
  return entries
}

/** Levels of lists within lists that are entries of their own. */
const MAX_DEPTH = 6

/**
 * Returns the entries of a feed, whatever its form: objects in lists are named by their own names (`debian / 12 /
 * openssl`); what is in no list is one entry for each member.
 */
export function entriesOfFeed(value: unknown): Map<string, string> {
  const entries = new Map<string, string>()
  gather(value, [], entries, 0)
  return entries
}

function gather(value: unknown, path: readonly string[], into: Map<string, string>, depth: number) {
  if (Array.isArray(value) && isList(value)) {
    for (const [at, one] of value.entries()) gather(one, [...path, nameOf(one) ?? String(at)], into, depth + 1)
    return
  }
  const isDeep = depth > MAX_DEPTH
  const members = isObject(value) && !isDeep ? Object.entries(value) : []
  const lists = members.filter(([, one]) => isList(one) || (depth === 0 && isObject(one)))
  for (const [name, one] of lists) {
    const isNamed = depth === 0 || lists.length > 1
    gather(one, isNamed ? [...path, name] : path, into, depth + 1)
  }
  if (lists.length === 0) return void into.set(path.join(' / '), textOfJson(value))
  const names = lists.map(([name]) => name)
  const rest = members.filter(([name]) => !names.includes(name))
  if (rest.length > 0) into.set(path.join(' / '), textOfJson(rest))
}

function isList(value: unknown): value is unknown[] {
  return Array.isArray(value) && value.length > 0 && value.every(isObject)
}

const NAMES = ['name', 'id', 'distroversion', 'distro_version', 'version', 'ecosystem']

/** Returns what an object of a list is called, by its own fields or those of an object in it. */
function nameOf(value: unknown): string | null {
  const own = fieldsOf(value)
  const inner = Object.values(own).filter(isObject)
  for (const fields of [own, ...inner]) {
    const name = textIn(fields)
    if (name !== null) return name
  }
  return null
}

function textIn(fields: Fields): string | null {
  for (const name of NAMES) {
    const text = fields[name]
    if (typeof text === 'string' && text !== '') return text
  }
  return null
}
