import { isObject } from '../../base/json/objects.ts'
import { MirrorError } from '../../base/errors.ts'
import {
  type EnvelopePlace,
  LAST,
  MORE,
  NEXT,
  TOTAL,
  isPageUrl,
  isSamePath,
  linkMember,
  placesOf,
  plainMember,
  truthOf,
} from '../../base/json/list-names.ts'
import { isOtherName } from '../../base/json/list-signs.ts'
import { type JsonPath, valueAt } from '../../base/json/slices.ts'

export type EnvelopeFields = Readonly<Record<string, unknown>>

/** The next page as a page names it. */
export interface Next {
  /** A page's URL, absolute or relative, or the value for a parameter. */
  text: string
  isUrl: boolean
  /** Name of the member that contains it, in upstream's spelling. */
  field: string
}

/** What a page states about the next one. */
interface NextPageRule {
  next: Next | null
  cursorPath: JsonPath | null
  /** Whether the page states that there are more; null: it does not. */
  more: boolean | null
}

/**
 * Member names of the next page, in order of precedence. A name of an earlier row counts even when it states that
 * there are no more: `after` next to `next` is the cursor of this page's request.
 */
const RANKS: readonly RegExp[] = [
  NEXT,
  /^(after|endcursor|cursorafter)$/,
  /^((?!prev|start|before|first|current|self)\w*cursor|(page|paging|pagination|continuation|continue)token|continuation|continue|\w*marker|bookmark|scrollid|more(url|link|href)?)$/,
  /^last(id|key|seen|seenid|itemid|evaluatedkey)$/,
]

/** Names of when something happens next: `next_update`, `next_run_at`. */
const TIMED = /^next(scheduled)?(update|run|sync|refresh|poll|check|build|release|retry|time|date|reset|publish)/

const PAGES = new Set(['totalpages', 'pages', 'pagecount', 'lastpage'])
const PAGE_SIZE = new Set(['limit', 'pagesize', 'perpage', 'size', 'itemsperpage', 'maxresults'])

/**
 * Finds the next page. `known` is the position on an earlier page of the list. Throws `upstream_shape` when two
 * positions disagree.
 */
export function findCursor(page: EnvelopeFields, itemsPath: JsonPath, known: JsonPath | null = null): NextPageRule {
  const places = placesOf(page, itemsPath)
  const flag = flagOf(places)
  const rows = RANKS.map((names) =>
    places.filter(
      ({ name, value }) => names.test(name) && !TIMED.test(name) && isCursor(value) && !isFlag(name, value),
    ),
  )
  const atKnown = places.filter(({ path, value }) => isSamePath(path, known) && isCursor(value))
  const named = [atKnown, ...rows].find((row) => row.length > 0) ?? []
  const [first] = named
  if (first === undefined) return { next: null, cursorPath: null, more: flag ?? emptyCursorFlag(page) }
  const candidates = named.flatMap((place) => {
    const next = nextOf(place)
    return next === null ? [] : [{ path: place.path, next }]
  })
  const best = selectNext(candidates)
  if (best === null || flag === false) return { next: null, cursorPath: (best ?? first).path, more: flag ?? false }
  return { next: best.next, cursorPath: best.path, more: true }
}

/** Returns whether a value is a flag that there are more, also as a number or a text (`"more": "true"`). */
function isFlag(name: string, value: unknown): boolean {
  return MORE.has(name) && (typeof value === 'number' || truthOf(value) !== null)
}

/** Returns the position of the total number of items, if there is one; `page.total` may be a number of pages, and -1 is none. */
export function findTotal(page: EnvelopeFields, itemsPath: JsonPath): JsonPath | null {
  const place = placesOf(page, itemsPath).find(
    ({ path, name, value }) =>
      TOTAL.has(name) &&
      !isOfPage(path) &&
      !isOtherTotal(path) &&
      ((Number.isSafeInteger(value) && Number(value) >= 0) || isDigits(value)),
  )
  return place?.path ?? null
}

/** Returns whether a total is that of something else: `rate_limit.total`, `_shards.total`. */
function isOtherTotal(path: JsonPath): boolean {
  return path.slice(0, -1).some((step) => isOtherName(String(step)))
}

function isOfPage(path: JsonPath): boolean {
  const names = path.map((step) => plainMember(String(step)))
  return names.at(-1) === 'total' && names.at(-2) === 'page'
}

/** Returns whether a value is a number as a text. */
function isDigits(value: unknown): boolean {
  return typeof value === 'string' && /^\d{1,15}$/.test(value)
}

/** Returns the numbers of pages and of items per page, where the page contains them. */
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

/** Names of flags of the last page that may be 0 or 1; `last_page` and `done` are numbers of their own. */
const LAST_NUMBER = /^(is(last|lastpage|done|complete|final|end)|eof|nomore|exhausted)$/

/** Returns the value of the flags; null when there are none. */
function flagOf(places: readonly EnvelopePlace[]): boolean | null {
  const flags = places.flatMap(({ name, value }) => {
    const isNumber = typeof value === 'number' && (MORE.has(name) || LAST_NUMBER.test(name))
    const truth = isNumber ? value !== 0 : truthOf(value)
    if (truth === null) return []
    if (LAST.has(name)) return [!truth]
    return MORE.has(name) ? [truth] : []
  })
  if (flags.length > 0) return flags.every((more) => more)
  return places.some(({ name, value }) => name === 'next' && value === false) ? false : null
}

/**
 * Returns false for `{"cursor": {"limit": 100}}`, with which the service's own lists end: a cursor object without a
 * cursor (wire facts). A member of an unknown name (`token`) may be the cursor.
 */
function emptyCursorFlag(page: EnvelopeFields): boolean | null {
  const cursor = page['cursor']
  if (!isObject(cursor)) return null
  const mayLead = Object.entries(cursor).some(([name, value]) => mayBeCursor(name, value))
  return mayLead ? null : false
}

function mayBeCursor(name: string, value: unknown): boolean {
  if (value === null || value === '' || typeof value === 'boolean') return false
  return !isOtherName(name) && !/total|count|^(page|of|returned|shown)$/i.test(name)
}

interface Candidate {
  path: JsonPath
  next: Next
}

/**
 * Selects one of several positions: a URL first, because it names the parameter; then a text before a number. Throws
 * when they disagree.
 */
function selectNext(candidates: readonly Candidate[]): Candidate | null {
  const url = candidates.find(({ next }) => next.isUrl)
  if (url !== undefined) return url
  const texts = candidates.filter(({ next }) => !/^\d+$/.test(next.text))
  const [best, ...others] = texts.length > 0 ? texts : candidates
  if (best === undefined) return null
  if (others.every(({ next }) => next.text === best.next.text)) return best
  const where = candidates.map(({ path }) => path.join('.')).join(', ')
  throw unclear(`names the next page in several places, each in its own way: ${where}`)
}

/**
 * Returns whether a value can be a cursor: a text, a number, null for "no more", or an object with a link; not `next:
 * true`, nor a group of fields.
 */
function isCursor(value: unknown): boolean {
  if (value === null || typeof value === 'string' || typeof value === 'number') return true
  return linkMember(value) !== null
}

/** Values for "there is no next page": a page after another is neither the one at 0 nor at a negative number. */
const NO_PAGE = /^(?:|0|-\d+|null|none|nil|undefined)$/i

function nextOf({ path, value }: EnvelopePlace): Next | null {
  const member = linkMember(value)
  const inner = member === null ? value : valueAt(value, [member])
  const text = typeof inner === 'number' ? String(inner) : inner
  if (typeof text !== 'string' || NO_PAGE.test(text)) return null
  const isUrl = member !== null || isPageUrl(text)
  if (isUrl && URL.parse(text, 'http://relative.invalid/')?.searchParams.get('after') === '') return null
  return { text, isUrl, field: String(path.at(-1)) }
}

/** Creates the error for a page that is not a supported list. */
export function unclear(why: string): MirrorError {
  return new MirrorError('upstream_shape', `the list ${why}`)
}
