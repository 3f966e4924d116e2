import { plainName } from '../field-names.ts'
import { type Fields, isObject } from '../objects.ts'

/** Names of objects that have an item's own fields, as JSON:API and others have them. */
const ITEM_OBJECTS: readonly string[] = ['attributes', 'data', 'spec', 'properties', 'fields', 'metadata']

/** Further names by which the items of a resource are called, besides the one of the resource without its `s`. */
const NOUNS: Readonly<Record<string, readonly string[]>> = {
  patches: ['patch', 'ticket'],
  apiKeys: ['key'],
}

/** Returns the names of the objects that may have the fields of a resource's items, in any spelling of their letters. */
export function itemObjectsOf(resource: string): readonly string[] {
  return [...ITEM_OBJECTS, resource.replace(/s$/, ''), ...(NOUNS[resource] ?? [])]
}

const DEPTH = 2

/**
 * Returns the fields of a listed item: its own, and those of its objects that have its fields (`{"id": "7", "attributes":
 * {"name": "3.12"}}`, `{"tag": {"name": "3.12"}}`). An own value takes precedence.
 */
export function fieldsOfItem(item: Fields, resource: string, depth = 0): Fields {
  const inner = innerObjects(item, resource)
  if (inner.length === 0 || depth === DEPTH) return item
  const below = inner.flatMap(([, value]) => Object.entries(fieldsOfItem(value, resource, depth + 1)))
  const own = Object.entries(item).filter(([, value]) => value !== null && value !== '')
  return Object.fromEntries([...Object.entries(item), ...below.reverse(), ...own])
}

/** Separates the names of a field within objects; no service uses it in a name. */
const WITHIN = '\u241f'

/** Returns the names of an item's fields; of a field that only an inner object has, with the names of the objects. */
export function fieldPathsOf(item: Fields, resource: string, above = '', depth = 0): string[] {
  const inner = depth === DEPTH ? [] : innerObjects(item, resource)
  const own = Object.keys(item).map((name) => above + name)
  const below = inner.flatMap(([name, value]) => fieldPathsOf(value, resource, `${above}${name}${WITHIN}`, depth + 1))
  return [...own, ...below]
}

/** Returns the names that lead to a field, as `fieldPathsOf` wrote them. */
export function namesOfPath(path: string): string[] {
  return path.split(WITHIN)
}

function innerObjects(item: Fields, resource: string): [string, Fields][] {
  const names = objectNames(resource)
  return Object.entries(item).filter(
    (entry): entry is [string, Fields] => isObject(entry[1]) && names.has(plainName(entry[0])),
  )
}

const KNOWN = new Map<string, ReadonlySet<string>>()

function objectNames(resource: string): ReadonlySet<string> {
  const known = KNOWN.get(resource) ?? new Set(itemObjectsOf(resource).map(plainName))
  KNOWN.set(resource, known)
  return known
}
