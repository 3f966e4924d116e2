import { type JsonPath, valueAt } from './slices.ts'

/** A value of a list's envelope, its name in small letters without punctuation (`hasmore` for `has_more`, `hasMore`). */
export interface EnvelopePlace {
  path: JsonPath
  name: string
  value: unknown
}

const DEPTH = 3

/** What a member is called that names the next page and nothing else (`next`, `next_cursor`, `nextPageToken`). */
export const NEXT = /^(?!.*(hasnext|prev)).*next/

/** Flags that say whether there is a further page. */
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

/** Names under which a page tells how many items the list has. */
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
 * Parameters that take the id of the last item seen, where upstream names no cursor: the contract's own first
 * (service API, section 4), then what other services call it.
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

/** Every value of a page and of the objects in it, links in arrays (`[{"rel":"next","href":…}]`) by their relation; the items left out. */
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
    const relation = valueAt(value, ['rel'])
    if (typeof relation !== 'string' || !isLink(value)) return []
    return [{ path: [...above, at], name: plainMember(relation), value }]
  })
}

/** Whether a value is a link object: `{"href": "…"}`, `{"url": "…"}`. */
export function isLink(value: unknown): boolean {
  return linkMember(value) !== null
}

/** The member of a link object that holds its URL; null when the value is none. */
export function linkMember(value: unknown): 'href' | 'url' | null {
  const names = ['href', 'url'] as const
  return names.find((name) => typeof valueAt(value, [name]) === 'string') ?? null
}

/** Whether a text names a page by a URL, absolute or relative, rather than by a cursor. */
export function isPageUrl(text: string): boolean {
  return /^https?:\/\//i.test(text) || /^[^\s?]*\?[^\s=]+=/.test(text)
}

/** A name in small letters, without punctuation and digits. */
export function plainMember(name: string): string {
  return name.toLowerCase().replace(/[^a-z]/g, '')
}

/** Whether two places are the same. */
export function isSamePath(one: JsonPath, other: JsonPath | null): boolean {
  return other !== null && one.join('\0') === other.join('\0')
}

/** Whether a page calls its total an estimate (`"total_is_estimated": true`, `"total_relation": "gte"`). */
export function isEstimate(places: readonly EnvelopePlace[]): boolean {
  return places.some(
    ({ name, value }) =>
      (/estimat|approx/.test(name) && value === true) ||
      (/relation/.test(name) && typeof value === 'string' && value !== 'eq'),
  )
}
