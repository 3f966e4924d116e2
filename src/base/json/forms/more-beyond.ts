import { MORE, TOTAL, isLink, placesOf, plainMember } from '../list-names.ts'

/**
 * Returns what in a document says that it is one page of several, though it was fetched as the whole; null when nothing
 * does. `items` is the position of its `entries` entries, which are not looked at.
 */
export function moreBeyond(document: unknown, items: readonly string[], entries: number): string | null {
  const place = placesOf(document, items).find(
    ({ path, name, value }) =>
      path.slice(0, -1).every((one) => ENVELOPE.has(plainMember(String(one)))) && speaksOfMore(name, value, entries),
  )
  if (place === undefined) return null
  return `${place.path.join('.')} is ${JSON.stringify(place.value).slice(0, 60)}`
}

/** Names of objects that are around the entries or beside them; within others, names are content (a package `next`). */
const ENVELOPE: ReadonlySet<string> = new Set([
  'data',
  'result',
  'results',
  'response',
  'meta',
  'metadata',
  'info',
  'links',
  'paging',
  'pagination',
  'page',
  'pageinfo',
  'cursor',
  'cursors',
])

/** Names of flags that say that this is the last page. */
const ENDS: ReadonlySet<string> = new Set(['islast', 'last', 'islastpage', 'lastpage'])

/** Names of a number of pages. */
const PAGES: ReadonlySet<string> = new Set(['pages', 'totalpages', 'pagecount', 'lastpage'])

/** Names of what leads to the next page; `next_update` is something else. */
const NEXT =
  /^(after|next(cursor|page|pagetoken|token|url|uri|link|key|offset)?|(resume|continuation|scroll)(token|key|cursor))$/

function speaksOfMore(name: string, value: unknown, entries: number): boolean {
  if (MORE.has(name)) return value === true
  if (ENDS.has(name) && value === false) return true
  if (PAGES.has(name)) return Number(value) > 1
  if (TOTAL.has(name) || name === 'count') return Number(value) > entries
  if (!NEXT.test(name)) return false
  if (Array.isArray(value)) return value.some((one) => isLink(one) || typeof one === 'string')
  return isLink(value) || (Boolean(value) && typeof value !== 'object')
}
