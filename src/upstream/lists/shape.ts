import { isEstimate, isLink, placesOf, plainMember } from '../../json/list-names.ts'
import { type JsonPath, valueAt } from '../../json/slices.ts'
import {
  type EnvelopeFields,
  type Next,
  findCursor,
  findSizes,
  findTotal,
  isObject,
  unclear,
} from './cursor.ts'

/** Where a list keeps what: paths are members from the top of the page, `[]` the page itself. */
export interface ListShape {
  itemsPath: JsonPath
  items: readonly unknown[]
  /** What leads to the next page; null: the page names none. */
  next: Next | null
  cursorPath: JsonPath | null
  /** Whether there is more by the page's own word; null: it does not say. */
  more: boolean | null
  totalPath: JsonPath | null
  /** How many pages there are, and how many items a page has, where the page tells. */
  pages: number | null
  pageSize: number | null
  /** Whether the page calls its total an estimate. */
  isEstimate: boolean
}

/** What earlier pages of the list showed. */
export type KnownShape = Pick<ListShape, 'itemsPath' | 'cursorPath'> | null

/**
 * Learns the shape of a list's page, which the contract leaves open ("Payload gaps"): `{"data":[…],"cursor":{"after":…}}`,
 * `{"tickets":[…]}`, a bare array, `{"results":[…],"next_cursor":…}`, a next page given as a URL, and their like.
 * Throws `upstream_shape` when it is no list, or could be read in more than one way.
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
    ...{ itemsPath: path, items, ...named, ...findSizes(page, path) },
    totalPath: findTotal(page, path),
    isEstimate: isEstimate(placesOf(page, path)),
  }
}

interface Found {
  path: JsonPath
  items: readonly unknown[]
}

/** Names that lists are customarily kept under: they settle it when there are several arrays, and are not needed else. */
const CUSTOMARY = new Set(['data', 'items', 'results', 'records', 'entries', 'values', 'list'])
/** Names of arrays that stand beside the items. */
const BESIDE = new Set([
  ...['errors', 'warnings', 'messages', 'notices', 'links', 'included', 'facets', 'filters'],
  ...['sort', 'sorting', 'orderby', 'columns', 'fields', 'scopes', 'aggregations', 'meta'],
])
const DEPTH = 3

/** The array of the page that holds its items, up to three levels deep; for some services an empty list is null. */
function findItems(page: EnvelopeFields, known: JsonPath): Found {
  const before = known.length === 0 ? undefined : valueAt(page, known)
  if (Array.isArray(before)) return { path: known, items: before }
  const all = arraysOf(page, [])
  const own = all.filter(({ path }) => !path.some((name) => BESIDE.has(plainMember(String(name)))))
  const found = theOne(own) ?? emptyList(page) ?? theOne(all)
  if (found !== null) return found
  const keys = Object.keys(page).slice(0, 8).join(', ')
  throw unclear(`holds no array; its keys are: ${keys === '' ? 'none' : keys}`)
}

function arraysOf(fields: EnvelopeFields, above: JsonPath): Found[] {
  return Object.entries(fields).flatMap(([key, value]) => {
    const path = [...above, key]
    if (Array.isArray(value)) return value.some(isLink) && key.endsWith('inks') ? [] : [{ path, items: value }] // prettier-ignore
    return isObject(value) && path.length < DEPTH ? arraysOf(value, path) : []
  })
}

/** One array wins; of several, the one that holds objects, or has a customary name, or stands nearest to the top. */
function theOne(arrays: readonly Found[]): Found | null {
  if (arrays.length === 0) return null
  const shallowest = Math.min(...arrays.map(({ path }) => path.length))
  const rules: ((found: Found) => boolean)[] = [
    () => true,
    ({ items }) => items.some(isObject),
    ({ path }) => CUSTOMARY.has(String(path.at(-1))),
    ({ path, items }) => items.some(isObject) && CUSTOMARY.has(String(path.at(-1))),
    ({ path }) => path.length === shallowest,
    ({ path, items }) => path.length === shallowest && items.some(isObject),
  ]
  for (const rule of rules) {
    const [only, ...more] = arrays.filter(rule)
    if (only !== undefined && more.length === 0) return only
  }
  const names = arrays.map(({ path }) => path.join('.')).join(', ')
  throw unclear(`has several arrays, and nothing tells which holds the items: ${names}`)
}

/** `{"data": null}`: what some servers write for a list without items. */
function emptyList(page: EnvelopeFields): Found | null {
  const names = Object.entries(page).filter(
    ([key, value]) => value === null && CUSTOMARY.has(key.toLowerCase()),
  )
  const [only] = names
  return only !== undefined && names.length === 1 ? { path: [only[0]], items: [] } : null
}
