import { type Fields, findCursor, findTotal, isObject, unclear } from './shape-cursor.ts'

/** Where a list keeps what: paths are keys from the top of the page, `[]` the page itself. */
export interface ListShape {
  itemsPath: string[]
  items: readonly unknown[]
  /** The value for `after` that asks for the next page; null: this is the last one. */
  next: string | null
  cursorPath: string[] | null
  totalPath: string[] | null
}

/**
 * Learns the shape of a list's page, which the contract leaves open ("Payload gaps"): `{"data":[…],"cursor":{"after":…}}`,
 * `{"tickets":[…]}`, a bare array, `{"results":[…],"next_cursor":…}`, a next page given as a URL, and their like.
 * Throws `upstream_shape` when it is no list, or could be read in more than one way.
 */
export function learnList(page: unknown): ListShape {
  if (Array.isArray(page))
    return { itemsPath: [], items: page, next: null, cursorPath: null, totalPath: null }
  if (!isObject(page)) throw unclear('is neither an object nor an array')
  const { path, items } = findItems(page)
  const { next, cursorPath } = findCursor(page, path)
  return { itemsPath: path, items, next, cursorPath, totalPath: findTotal(page, path) }
}

interface Found {
  path: string[]
  items: readonly unknown[]
}

/** Names that lists are customarily kept under: they settle it when there are several arrays, and are not needed else. */
const CUSTOMARY = new Set(['data', 'items', 'results', 'records', 'entries', 'values', 'list'])

/** The one array of the page: at its top, else one level down; for some services an empty list is null. */
function findItems(page: Fields): Found {
  const top = Object.entries(page)
  const inner = top.flatMap(([outer, value]) =>
    isObject(value) ? Object.entries(value).map(([key, v]) => [[outer, key], v] as const) : [],
  )
  const first = theOne(arraysOf(top.map(([key, value]) => [[key], value] as const)))
  const found = first ?? theOne(arraysOf(inner)) ?? emptyList(top)
  if (found !== null) return found
  const keys = Object.keys(page).slice(0, 8).join(', ')
  throw unclear(`holds no array; its keys are: ${keys === '' ? 'none' : keys}`)
}

function arraysOf(entries: readonly (readonly [readonly string[], unknown])[]): Found[] {
  return entries.flatMap(([path, value]) =>
    Array.isArray(value) ? [{ path: [...path], items: value }] : [],
  )
}

/** One array wins; of several, the one with a customary name, else the only one that holds objects. */
function theOne(arrays: readonly Found[]): Found | null {
  if (arrays.length === 0) return null
  const rules: ((found: Found) => boolean)[] = [
    () => true,
    ({ path }) => CUSTOMARY.has(path.at(-1) ?? ''),
    ({ items }) => items.some(isObject),
  ]
  for (const rule of rules) {
    const [only, ...more] = arrays.filter(rule)
    if (only !== undefined && more.length === 0) return only
  }
  const names = arrays.map(({ path }) => path.join('.')).join(', ')
  throw unclear(`has several arrays, and nothing tells which holds the items: ${names}`)
}

/** `{"data": null}`: what some servers write for a list without items. */
function emptyList(top: readonly (readonly [string, unknown])[]): Found | null {
  const names = top.filter(([key, value]) => value === null && CUSTOMARY.has(key))
  const [only] = names
  return only !== undefined && names.length === 1 ? { path: [only[0]], items: [] } : null
}
