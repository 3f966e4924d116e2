import { type JsonPath, valueAt } from './slices.ts'

/** A value of a list's envelope, its name in small letters without punctuation (`hasmore` for `has_more`, `hasMore`). */
export interface EnvelopePlace {
  path: JsonPath
  name: string
  value: unknown
}

const DEPTH = 3

/** Member names that always mean the next page (`next`, `next_cursor`, `nextPageToken`). */
export const NEXT = /^(?!.*(hasnext|prev)).*next/

/** Names of flags that indicate a further page. */
export const MORE: ReadonlySet<string> = new Set([
  'hasmore',
  'hasnext',
  'hasnextpage',
  'more',
  'ismore',
  'moreavailable',
  'truncated',
  'istruncated',
])

/** Names of flags that indicate the last page. */
export const LAST: ReadonlySet<string> = new Set([
  'last',
  'lastpage',
  'islast',
  'islastpage',
  'done',
  'isdone',
  'complete',
  'iscomplete',
  'finished',
  'final',
  'isfinal',
  'end',
  'isend',
  'eof',
  'nomore',
  'exhausted',
])

/** Names of a list's total number of items. */
export const TOTAL: ReadonlySet<string> = new Set([
  'total',
  'totalcount',
  'totalitems',
  'totalresults',
  'totalrecords',
  'totalelements',
  'totalsize',
  'totalhits',
  'totalentries',
])

/**
 * Query parameters that accept the id of the last item, where upstream names no cursor: the contract's own first
 * (service API, section 4), then those of other services.
 */
export const LAST_ID_PARAMS: readonly string[] = [
  'after',
  'starting_after',
  'after_id',
  'last_id',
  'since_id',
  'cursor',
  'marker',
]

/** Query parameters of services that count: the number of items before the page. */
export const OFFSET_PARAMS: readonly string[] = ['offset', 'skip']

/** Names of that number which are asked for only where pages have it themselves: `{"startAt": 0, …}`. */
const POSITION = /^(start(at|index|from|row|position)?|from|firstresult)$/

/** Returns whether a parameter is the number of items before the page. */
export function isOffset(param: string | null): boolean {
  return param !== null && (OFFSET_PARAMS.includes(param) || isPosition(param))
}

/** Returns whether a name may be that of the number of items before the page. */
export function isPosition(name: string): boolean {
  return POSITION.test(plainMember(name))
}

/** Returns the number that a page gives as its own position under the name of a parameter; null: it gives none. */
export function positionIn(page: unknown, items: JsonPath, param: string): number | null {
  const found = placesOf(page, items).find(({ path, value }) => path.at(-1) === param && Number.isSafeInteger(value))
  return found === undefined || !isPosition(found.name) ? null : Number(found.value)
}

/**
 * Returns every value of a page and of its objects, without the items; links in arrays (`[{"rel":"next","href":…}]`)
 * are named by their relation.
 */
export function placesOf(page: unknown, items: JsonPath, above: JsonPath = []): EnvelopePlace[] {
  if (typeof page !== 'object' || page === null) return []
  if (Array.isArray(page)) return linksIn(page, above)
  return Object.entries(page).flatMap(([key, value]: [string, unknown]) => {
    const path = [...above, key]
    if (isSamePath(path, items)) return []
    const own = { path, name: plainMember(key), value }
    return path.length < DEPTH ? [own, ...placesOf(value, items, path)] : [own]
  })
}

function linksIn(list: readonly unknown[], above: JsonPath): EnvelopePlace[] {
  return list.flatMap((value, at) => {
    const relation = relationOf(value) ?? nextArray(above)
    if (relation === null || !isLink(value)) return []
    return [{ path: [...above, at], name: plainMember(relation), value }]
  })
}

/** Returns the relation of a link object, `next` before others where it has several; null: it has none. */
export function relationOf(value: unknown): string | null {
  const rel = valueAt(value, ['rel'])
  const all = (Array.isArray(rel) ? rel : [rel]).filter((one) => typeof one === 'string')
  return all.find((one) => one.toLowerCase() === 'next') ?? all[0] ?? null
}

/** Returns the name of an array of links to the next page, as HAL has it: `{"next": [{"href": "…"}]}`. */
function nextArray(path: JsonPath): string | null {
  const name = plainMember(String(path.at(-1)))
  return /^next(page|link)?$/.test(name) ? name : null
}

/** Returns whether a value is a link object: `{"href": "…"}`, `{"url": "…"}`. */
export function isLink(value: unknown): boolean {
  return linkMember(value) !== null
}

/** Returns the member of a link object that contains its URL; null when the value is not a link object. */
export function linkMember(value: unknown): 'href' | 'url' | null {
  const names = ['href', 'url'] as const
  return names.find((name) => typeof valueAt(value, [name]) === 'string') ?? null
}

/** Returns whether a text names a page by a URL, absolute or relative, and not by a cursor. */
export function isPageUrl(text: string): boolean {
  return /^https?:\/\//i.test(text) || /^[^\s?]*\?[^\s=]+=/.test(text)
}

/** Returns a name in lower case, without punctuation and digits. */
export function plainMember(name: string): string {
  return name.toLowerCase().replace(/[^a-z]/g, '')
}

/** Returns the value of a flag, which some services write as a text; null: it is none. */
export function truthOf(value: unknown): boolean | null {
  if (typeof value === 'boolean') return value
  const text = typeof value === 'string' ? value.trim().toLowerCase() : ''
  if (/^(true|yes|y)$/.test(text)) return true
  return /^(false|no|n)$/.test(text) ? false : null
}

/** Returns whether two paths are equal. */
export function isSamePath(one: JsonPath, other: JsonPath | null): boolean {
  return other !== null && one.join('\0') === other.join('\0')
}

/** Returns whether a page calls its total an estimate (`"total_is_estimated": true`, `"total_relation": "gte"`). */
export function isEstimate(places: readonly EnvelopePlace[]): boolean {
  return places.some(
    ({ name, value }) =>
      (/estimat|approx/.test(name) && value === true) ||
      (/relation/.test(name) && typeof value === 'string' && value !== 'eq'),
  )
}
