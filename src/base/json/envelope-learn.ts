import { type Frame, type NextPlace, replaceAt } from './envelope.ts'
import {
  type EnvelopePlace,
  LAST,
  MORE,
  NEXT,
  isEstimate,
  isPageUrl,
  isSamePath,
  linkMember,
  placesOf,
} from './list-names.ts'
import { type LinkStyle, styleOfLink } from './forms/page-links.ts'
import { type JsonPath, valueAt } from './slices.ts'

/** Position of the cursor in the service's own lists (wire facts, lists and cursors). */
const GUESSED = ['cursor', 'after']
const BACK = new Set(['before', 'previous', 'prev', 'previouscursor', 'prevcursor', 'previouspage'])
const SHOWN = new Set(['count', 'returned', 'shown', 'pagecount', 'itemcount'])
const PAGE = new Set(['page', 'pagenumber', 'currentpage', 'pageindex', 'number'])
const PAGES = new Set(['totalpages', 'pages', 'lastpage'])

/** Learns a list's frame from a page; the last page completes it. */
export function frameOf(
  page: unknown,
  known: { itemsPath: JsonPath; cursorPath: JsonPath | null; totalPath: JsonPath | null },
  limit: number,
): Frame {
  const items = known.itemsPath
  const places = placesOf(page, items)
  const cursor = known.cursorPath ?? guessCursor(page)
  const next = formOf(page, cursor)
  const count = (valueAt(page, items) as unknown[] | null | undefined)?.length ?? 0
  // On a page that has a next one, a count equal to its own items is not the total.
  const total = known.totalPath ?? findTotal(places, next === null ? count : count + 1)
  const numbers = places.filter(({ path }) => !isSamePath(path, total))
  const own = numbers.find(({ name, value }) => PAGE.has(name) && (value === 0 || value === 1))
  const ends = places.flatMap(({ path, name, value }) => (LAST.has(name) && typeof value === 'boolean' ? [path] : []))
  const numbered = (names: ReadonlySet<string>): JsonPath | null =>
    numbers.find(({ name, value }) => names.has(name) && typeof value === 'number')?.path ?? null
  return {
    envelope: items.length === 0 ? [] : replaceAt(page, items, []),
    items,
    cursor,
    total,
    limit: numbers.find(({ name, value }) => value === limit && !/total|count/.test(name))?.path ?? null,
    ending: endingOf(page, cursor),
    url: next?.url ?? false,
    link: next?.link ?? null,
    ...(next?.style !== undefined && { style: next.style }),
    also: alsoNamed(page, places, cursor),
    more: places.flatMap(({ path, name, value }) => (MORE.has(name) && typeof value === 'boolean' ? [path] : [])),
    ...(ends.length > 0 && { ends }),
    ...(own !== undefined && { page: own.path }),
    back: places.flatMap(({ path, name }) => (BACK.has(name) ? [path] : [])),
    shown: numbered(SHOWN),
    pages: numbered(PAGES),
    learned: next !== null,
    ...(isEstimate(places) && { estimated: true as const }),
  }
}

/** Returns a frame with the way to name the next page that was learned from a page that is not the last. */
export function withNextOf(frame: Frame, { cursor, url, link, style, also }: Frame): Frame {
  const { style: _style, ...rest } = frame
  const ending = endingOf(frame.envelope, cursor)
  return { ...rest, cursor, url, link, also, ending, ...(style !== undefined && { style }) }
}

/** Returns the value in the cursor's position on a page without a next one. */
export function endingOf(page: unknown, cursor: JsonPath | null): Frame['ending'] {
  const value = cursor === null ? undefined : valueAt(page, cursor)
  if (value === null) return 'null'
  return value === '' ? 'empty' : 'absent'
}

/** Finds a `count` that is the total; for some services it is the number of items on the page. */
function findTotal(places: readonly EnvelopePlace[], count: number): JsonPath | null {
  const found = places.find(({ name, value }) => name === 'count' && typeof value === 'number' && value >= count)
  return found?.path ?? null
}

/** Returns the position of a cursor object; a list of one page has no cursor in it. */
function guessCursor(page: unknown): JsonPath | null {
  const cursor = valueAt(page, ['cursor'])
  return typeof cursor === 'object' && cursor !== null ? GUESSED : null
}

/** Returns how a position names the next page; null when it names none. */
function formOf(page: unknown, path: JsonPath | null): NextPlace | null {
  if (path === null) return null
  const value = valueAt(page, path)
  if (typeof value === 'object' && value !== null) {
    const link = linkMember(value)
    return link === null ? null : { path, url: true, link, ...styleAt(valueAt(value, [link])) }
  }
  if (typeof value === 'number') return { path, url: false, link: null }
  if (typeof value !== 'string' || value === '') return null
  return { path, url: isPageUrl(value), link: null, ...(isPageUrl(value) && styleAt(value)) }
}

/** Returns how a URL is written, where it is not a whole one. */
function styleAt(url: unknown): { style?: LinkStyle } {
  const style = typeof url === 'string' ? styleOfLink(url) : null
  return style === null || style === 'absolute' ? {} : { style }
}

/** Returns other positions that name the same next page in another form. */
function alsoNamed(page: unknown, places: readonly EnvelopePlace[], cursor: JsonPath | null): NextPlace[] {
  if (formOf(page, cursor) === null) return []
  const wanted = afterAt(page, cursor)
  return places.flatMap(({ path, name }) => {
    const within = cursor !== null && isSamePath(path.slice(0, cursor.length), cursor)
    const same = NEXT.test(name) || (wanted !== null && afterAt(page, path) === wanted)
    const form = within || !same ? null : formOf(page, path)
    return form === null ? [] : [form]
  })
}

/** Returns the cursor at a position, extracted from a URL if necessary. */
function afterAt(page: unknown, path: JsonPath | null): string | null {
  const form = formOf(page, path)
  if (path === null || form === null) return null
  const text = valueAt(page, form.link === null ? path : [...path, form.link])
  if (typeof text !== 'string') return null // equal numbers can be a coincidence
  return form.url ? (URL.parse(text, 'http://relative.invalid/')?.searchParams.get('after') ?? null) : text
}
