import { isObject } from '../../base/json/objects.ts'
import { isEstimate, isLink, placesOf, plainMember } from '../../base/json/list-names.ts'
import { type JsonPath, valueAt } from '../../base/json/slices.ts'
import { type EnvelopeFields, type Next, findCursor, findSizes, findTotal, unclear } from './cursor.ts'

/** Positions in a list's page: paths of members from the top, `[]` the page itself. */
export interface ListShape {
  itemsPath: JsonPath
  items: readonly unknown[]
  /** The next page; null: the page names none. */
  next: Next | null
  cursorPath: JsonPath | null
  /** Whether the page states that there is more; null: it does not. */
  more: boolean | null
  totalPath: JsonPath | null
  /** Numbers of pages and of items per page, where the page contains them. */
  pages: number | null
  pageSize: number | null
  /** Whether the page calls its total an estimate. */
  isEstimate: boolean
}

/** What earlier pages of the list contained. */
export type KnownShape = Pick<ListShape, 'itemsPath' | 'cursorPath'> | null

/**
 * Learns the shape of a list's page, which the contract leaves open ("Payload gaps"):
 * `{"data":[…],"cursor":{"after":…}}`, `{"tickets":[…]}`, a bare array, `{"results":[…],"next_cursor":…}`, a next
 * page as a URL, and similar. Throws `upstream_shape` when it is not a list, or is ambiguous.
 */
export function learnList(page: unknown, known: KnownShape = null): ListShape {
  if (Array.isArray(page)) {
    const none = { next: null, cursorPath: null, more: null, totalPath: null }
    return { itemsPath: [], items: page, ...none, pages: null, pageSize: null, isEstimate: false }
  }
  if (!isObject(page)) throw unclear('is neither an object nor an array')
  const { path, items } = findItems(page, known?.itemsPath ?? [])
  const named = findCursor(page, path, known?.cursorPath)
  return {
    itemsPath: path,
    items,
    ...named,
    ...findSizes(page, path),
    totalPath: findTotal(page, path),
    isEstimate: isEstimate(placesOf(page, path)),
  }
}

interface Found {
  path: JsonPath
  items: readonly unknown[]
}

/** Usual names of item arrays; used only when a page has several arrays. */
const USUAL_NAMES = new Set(['data', 'items', 'results', 'records', 'entries', 'values', 'list'])
/** Names of arrays that are not the items. */
const OTHER_ARRAYS = new Set([
  ...['errors', 'warnings', 'messages', 'notices', 'links', 'included', 'facets', 'filters'],
  ...['sort', 'sorting', 'orderby', 'columns', 'fields', 'scopes', 'aggregations', 'meta'],
])
const DEPTH = 3

/** Finds the array of items, up to three levels deep; some services send null for an empty list. */
function findItems(page: EnvelopeFields, known: JsonPath): Found {
  const before = known.length === 0 ? undefined : valueAt(page, known)
  if (Array.isArray(before)) return { path: known, items: before }
  const all = arraysOf(page, [])
  const own = all.filter(({ path }) => !path.some((name) => OTHER_ARRAYS.has(plainMember(String(name)))))
  if (isKeyed(page)) throw unclear('is an object of single items by their ids, and no array')
  const found = selectArray(own) ?? emptyList(page) ?? selectArray(all)
  if (found !== null) return found
  const keys = Object.keys(page).slice(0, 8).join(', ')
  throw unclear(`contains no array; its keys are: ${keys === '' ? 'none' : keys}`)
}

/** Returns whether an object has items as members: `{"7": {"id": 7}}`. Their own arrays are not the list. */
function isKeyed(page: EnvelopeFields): boolean {
  const members = Object.entries(page).filter(([, value]) => isObject(value))
  return members.length > 0 && members.every(([key, value]) => isItem(key, value))
}

/** Returns whether a member is an item: its name is a number or a UUID, or the item's own id or name (`{"type": "list"}` is none). */
function isItem(key: string, value: unknown): boolean {
  if (/^\d+$|^[\da-f]{8}-[\da-f-]{27}$/i.test(key)) return true
  const own = isObject(value) ? Object.entries(value) : []
  return own.some(([name, one]) => one === key && /^name$|id$/i.test(name))
}

function arraysOf(fields: EnvelopeFields, above: JsonPath): Found[] {
  return Object.entries(fields).flatMap(([key, value]) => {
    const path = [...above, key]
    if (Array.isArray(value)) return value.some(isLink) && key.endsWith('inks') ? [] : [{ path, items: value }]
    return isObject(value) && path.length < DEPTH ? arraysOf(value, path) : []
  })
}

/** Selects one array: the only one; of several, the one with objects, with a usual name, or nearest to the top. */
function selectArray(arrays: readonly Found[]): Found | null {
  if (arrays.length === 0) return null
  const shallowest = Math.min(...arrays.map(({ path }) => path.length))
  const rules: ((found: Found) => boolean)[] = [
    () => true,
    ({ items }) => items.some(isObject),
    ({ path }) => USUAL_NAMES.has(String(path.at(-1))),
    ({ path, items }) => items.some(isObject) && USUAL_NAMES.has(String(path.at(-1))),
    ({ path }) => path.length === shallowest,
    ({ path, items }) => path.length === shallowest && items.some(isObject),
  ]
  for (const rule of rules) {
    const [only, ...more] = arrays.filter(rule)
    if (only !== undefined && more.length === 0) return only
  }
  const names = arrays.map(({ path }) => path.join('.')).join(', ')
  throw unclear(`has several arrays, and it is unknown which one contains the items: ${names}`)
}

/** Finds the null that some servers write for an empty list (`{"data": null}`). */
function emptyList(page: EnvelopeFields): Found | null {
  const names = Object.entries(page).filter(([key, value]) => value === null && USUAL_NAMES.has(key.toLowerCase()))
  const [only] = names
  return only !== undefined && names.length === 1 ? { path: [only[0]], items: [] } : null
}
