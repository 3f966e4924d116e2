import { MirrorError } from '../../core/errors.ts'
import {
  type EnvelopePlace,
  MORE,
  NEXT,
  TOTAL,
  isPageUrl,
  isSamePath,
  linkMember,
  placesOf,
} from '../../json/list-names.ts'
import { type JsonPath, valueAt } from '../../json/slices.ts'

export type EnvelopeFields = Readonly<Record<string, unknown>>

/** What a page names as the next one. */
export interface Next {
  /** A page's URL, absolute or relative, or the value for a parameter. */
  text: string
  isUrl: boolean
  /** What the member is called that holds it, as upstream writes it. */
  field: string
}

/** What a page says of those that follow. */
interface NextPageRule {
  next: Next | null
  cursorPath: JsonPath | null
  /** Whether there are more by the page's own word; null: it does not say. */
  more: boolean | null
}

/**
 * What the place of the next page is called, best first. A name of an earlier row counts even when it says "no more":
 * `after` beside `next` is what this page was asked for.
 */
const RANKS: readonly RegExp[] = [
  NEXT,
  /^(after|endcursor|cursorafter)$/,
  /^((?!prev|start|before|first|current|self)\w*cursor|(page|paging|pagination|continuation|continue)token|continuation|continue|\w*marker|bookmark|scrollid|more(url|link|href)?)$/,
  /^last(id|key|seen|seenid|itemid|evaluatedkey)$/,
]

const PAGES = new Set(['totalpages', 'pages', 'pagecount', 'lastpage'])
const PAGE_SIZE = new Set(['limit', 'pagesize', 'perpage', 'size', 'itemsperpage', 'maxresults'])

/**
 * Where a page names the next one. `known` is the place that an earlier page of the list had. Throws `upstream_shape` when
 * two places disagree.
 */
export function findCursor(
  page: EnvelopeFields,
  itemsPath: JsonPath,
  known: JsonPath | null = null,
): NextPageRule {
  const places = placesOf(page, itemsPath)
  const flag = flagOf(places)
  const rows = RANKS.map((names) =>
    places.filter(({ name, value }) => names.test(name) && isCursor(value)),
  )
  const atKnown = places.filter(({ path, value }) => isSamePath(path, known) && isCursor(value))
  const named = [atKnown, ...rows].find((row) => row.length > 0) ?? []
  const [first] = named
  if (first === undefined) return { next: null, cursorPath: null, more: flag ?? silence(page) }
  const told = named.flatMap((place) => {
    const next = nextOf(place)
    return next === null ? [] : [{ path: place.path, next }]
  })
  const best = agreed(told)
  if (best === null || flag === false)
    return { next: null, cursorPath: (best ?? first).path, more: flag ?? false }
  return { next: best.next, cursorPath: best.path, more: true }
}

/** Where a page tells how many items there are in all, if it does. */
export function findTotal(page: EnvelopeFields, itemsPath: JsonPath): JsonPath | null {
  const place = placesOf(page, itemsPath).find(
    ({ name, value }) => TOTAL.has(name) && Number.isSafeInteger(value),
  )
  return place?.path ?? null
}

/** How many pages the list has, and how many items a page of it, as far as the page tells. */
export function findSizes(
  page: EnvelopeFields,
  itemsPath: JsonPath,
): { pages: number | null; pageSize: number | null } {
  const places = placesOf(page, itemsPath)
  const numberAt = (names: ReadonlySet<string>): number | null => {
    const found = places.find(({ name, value }) => names.has(name) && Number.isSafeInteger(value))
    return found === undefined ? null : Number(found.value)
  }
  return { pages: numberAt(PAGES), pageSize: numberAt(PAGE_SIZE) }
}

/** What flags say; null when there are none. */
function flagOf(places: readonly EnvelopePlace[]): boolean | null {
  const flags = places.filter(({ name, value }) => MORE.has(name) && typeof value === 'boolean')
  const [flag] = flags
  if (flag !== undefined) return flags.every(({ value }) => value === true)
  return places.some(({ name, value }) => name === 'next' && value === false) ? false : null
}

/** `{"cursor": {"limit": 100}}` is how the service's own lists end: a place for a cursor, and none in it (wire facts). */
function silence(page: EnvelopeFields): boolean | null {
  return isObject(page['cursor']) ? false : null
}

interface Told {
  path: JsonPath
  next: Next
}

/** Of several places a URL wins, for it says how to ask; of cursors a text wins over a number. Throws when they disagree. */
function agreed(told: readonly Told[]): Told | null {
  const url = told.find(({ next }) => next.isUrl)
  if (url !== undefined) return url
  const texts = told.filter(({ next }) => !/^\d+$/.test(next.text))
  const [best, ...others] = texts.length > 0 ? texts : told
  if (best === undefined) return null
  if (others.every(({ next }) => next.text === best.next.text)) return best
  const where = told.map(({ path }) => path.join('.')).join(', ')
  throw unclear(`names the next page in several places, each in its own way: ${where}`)
}

/** A text, a number, null for "no more", or an object that holds a link. Not `next: true`, nor a group of fields. */
function isCursor(value: unknown): boolean {
  if (value === null || typeof value === 'string' || typeof value === 'number') return true
  return linkMember(value) !== null
}

function nextOf({ path, value }: EnvelopePlace): Next | null {
  const member = linkMember(value)
  const inner = member === null ? value : valueAt(value, [member])
  const text = typeof inner === 'number' ? String(inner) : inner
  if (typeof text !== 'string' || text === '') return null
  const isUrl = member !== null || isPageUrl(text)
  if (isUrl && URL.parse(text, 'http://relative.invalid/')?.searchParams.get('after') === '')
    return null
  return { text, isUrl, field: String(path.at(-1)) }
}

/** Whether a JSON value is an object, and no array. */
export function isObject(value: unknown): value is EnvelopeFields {
  return typeof value === 'object' && value !== null && !Array.isArray(value)
}

/** The error for a page that is no list that we understand. */
export function unclear(why: string): MirrorError {
  return new MirrorError('upstream_shape', `the list ${why}`)
}
