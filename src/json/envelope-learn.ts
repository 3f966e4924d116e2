import { type Frame, type NextPlace, replaceAt } from './envelope.ts'
import {
  type EnvelopePlace,
  MORE,
  NEXT,
  isEstimate,
  isPageUrl,
  isSamePath,
  linkMember,
  placesOf,
} from './list-names.ts'
import { type JsonPath, valueAt } from './slices.ts'

/** Where the service's own lists have it (wire facts, lists and cursors). */
const GUESSED = ['cursor', 'after']
const BACK = new Set(['before', 'previous', 'prev', 'previouscursor', 'prevcursor', 'previouspage'])
const SHOWN = new Set(['count', 'returned', 'shown', 'pagecount', 'itemcount'])
const PAGES = new Set(['totalpages', 'pages', 'lastpage'])

/** What a page can tell of its list's frame; the rest comes with the last page. */
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
  // On a page with a further one, a count of just its own items is no total.
  const total = known.totalPath ?? findTotal(places, next === null ? count : count + 1)
  const numbers = places.filter(({ path }) => !isSamePath(path, total))
  const numbered = (names: ReadonlySet<string>): JsonPath | null =>
    numbers.find(({ name, value }) => names.has(name) && typeof value === 'number')?.path ?? null
  return {
    envelope: items.length === 0 ? [] : replaceAt(page, items, []),
    items,
    cursor,
    total,
    limit:
      numbers.find(({ name, value }) => value === limit && !/total|count/.test(name))?.path ?? null,
    ending: endingOf(page, cursor),
    url: next?.url ?? false,
    link: next?.link ?? null,
    also: alsoNamed(page, places, cursor),
    more: places.flatMap(({ path, name, value }) =>
      MORE.has(name) && typeof value === 'boolean' ? [path] : [],
    ),
    back: places.flatMap(({ path, name }) => (BACK.has(name) ? [path] : [])),
    shown: numbered(SHOWN),
    pages: numbered(PAGES),
    learned: next !== null,
    ...(isEstimate(places) && { estimated: true as const }),
  }
}

/** A frame that learned from a page which is not the last how the next one is named. */
export function withNextOf(frame: Frame, { cursor, url, link, also }: Frame): Frame {
  return { ...frame, cursor, url, link, also, ending: endingOf(frame.envelope, cursor) }
}

/** What stands where the next cursor would, on a page that has none. */
export function endingOf(page: unknown, cursor: JsonPath | null): Frame['ending'] {
  const value = cursor === null ? undefined : valueAt(page, cursor)
  return value === null ? 'null' : value === '' ? 'empty' : 'absent'
}

/** `count` is the total for some services, and the number of items shown for others, which have a total beside it. */
function findTotal(places: readonly EnvelopePlace[], count: number): JsonPath | null {
  const found = places.find(
    ({ name, value }) => name === 'count' && typeof value === 'number' && value >= count,
  )
  return found?.path ?? null
}

/** A list that never had a second page shows no cursor; an object of that name is where it would be. */
function guessCursor(page: unknown): JsonPath | null {
  const cursor = valueAt(page, ['cursor'])
  return typeof cursor === 'object' && cursor !== null ? GUESSED : null
}

/** How a next page is named at a place; null when no next page is named there. */
function formOf(page: unknown, path: JsonPath | null): NextPlace | null {
  if (path === null) return null
  const value = valueAt(page, path)
  if (typeof value === 'object' && value !== null) {
    const link = linkMember(value)
    return link === null ? null : { path, url: true, link }
  }
  if (typeof value === 'number') return { path, url: false, link: null }
  if (typeof value !== 'string' || value === '') return null
  return { path, url: isPageUrl(value), link: null }
}

/** Other places that name the same next page, in a form of their own. */
function alsoNamed(
  page: unknown,
  places: readonly EnvelopePlace[],
  cursor: JsonPath | null,
): NextPlace[] {
  if (formOf(page, cursor) === null) return []
  const wanted = afterAt(page, cursor)
  return places.flatMap(({ path, name }) => {
    const within = cursor !== null && isSamePath(path.slice(0, cursor.length), cursor)
    const same = NEXT.test(name) || (wanted !== null && afterAt(page, path) === wanted)
    const form = within || !same ? null : formOf(page, path)
    return form === null ? [] : [form]
  })
}

/** The cursor that is named at a place, freed of its URL. */
function afterAt(page: unknown, path: JsonPath | null): string | null {
  const form = formOf(page, path)
  if (path === null || form === null) return null
  const text = valueAt(page, form.link === null ? path : [...path, form.link])
  if (typeof text !== 'string') return null // numbers are too common to be the same by more than chance
  return form.url
    ? (URL.parse(text, 'http://relative.invalid/')?.searchParams.get('after') ?? null)
    : text
}
