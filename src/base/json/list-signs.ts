import { wordsOf } from './field-names.ts'
import { isPageUrl, isSamePath, plainMember, truthOf } from './list-names.ts'
import { isObject } from './objects.ts'
import type { JsonPath } from './slices.ts'

/**
 * What a member of a page, or a header of its response, says about the extent of the list. `more`: that there is more.
 * `items`, `pages`: a number of them, which says "more" while fewer were read; `either`: one of both. `cursor`: a value
 * that may lead on, which says nothing where the end is stated. `unread`: a number or a flag of an unknown name, which may be
 * about the list; while it may, the list is not silent about more.
 */
export interface ListSign {
  /** Its name as upstream writes it, for messages. */
  name: string
  kind: 'more' | 'items' | 'pages' | 'either' | 'cursor' | 'unread'
  /** The number of items or pages, or the text of the cursor. */
  value: number | string
  /** Whether the value can only be the number of all items, or of all pages; a position in the list is not. */
  isWhole: boolean
  /** The page's own number, where the value is that of the last page; absent: the page does not say it. */
  own?: number
  /** Position in the page; null: a header. */
  path: JsonPath | null
}

/** How much of a list was read. */
interface ReadSoFar {
  /** Items on all pages until now. */
  items: number
  /** Items on this page. */
  shown: number
  pages: number
}

const setOf = (words: string): ReadonlySet<string> => new Set(words.split(' '))

/** Words of names that count, of names that lead on, and of flags that say "more" when true, or when false. */
const QUANTITY = setOf('total count remain range of done last page found matched incomplete truncated partial')
const ONWARD = setOf('next more cursor token resume continuation marker')
const MORE_IF_TRUE = setOf('next more remain resume incomplete truncated partial')
const MORE_IF_FALSE = setOf('last done')
/** Words of names that are flags, whose value may be 1. */
const FLAG = setOf('is has incomplete truncated partial')
/** Words of objects whose members without such a word are about the same: `{"total": {"value": 437}}`. */
const INHERITED = setOf('total remain range next more resume cursor')
/** Words that give a name another meaning: a place or a size of a page, a time, a limit of requests, a credential. */
const OTHER = setOf(
  'accept previous prev before first from self start size per limit rate ratelimit quota request retry credit call time date at ' +
    'modified updated created changed refreshed synced published generated checked timestamp update refresh sync run poll ' +
    'build ms second duration took elapsed byte length type title rel method format version csrf xsrf access auth authorization ' +
    'attempt session bearer api sort order schema ttl expire expiry age home shard correlation transfer include relation',
)
/** Words of objects all of whose members have another meaning. */
const OTHER_ABOVE = setOf(
  'previous prev before first self rate ratelimit quota request param params query filter sort order auth session shard',
)
/** Words of which the name of a list's whole number of items, or of pages, consists. */
const WHOLE_WORDS = setOf(
  'x total overall all count number num of item element result record entry entries hit row value exact page available ^',
)
/** Names of a page's own number. */
const OWN_NUMBER = setOf('page number currentpage pagenumber pageindex pageno current')
/** Objects beside the items that do not describe the list. */
const ASIDE = setOf('errors warnings included facets filters aggregations fields columns')
/** Headers that are read elsewhere, or have another meaning. */
const KNOWN_HEADERS = setOf('link last-modified accept-ranges set-cookie x-mirror-incomplete')
/** Values that say "none". */
const NONE = setOf('none null nil undefined n/a - 0 []')

/** The pieces of a name in small letters without separators (`totalpages`, `islast`). */
const PIECE =
  'has|is|next|more|last|total|pages?|resume|remaining|remain|cursor|token|count|items?|results?|records?|elements?|entries|number|key|id|url|link|of|done'
const GLUED = new RegExp(`^(?:${PIECE})+$`)
const PIECES = new RegExp(PIECE, 'g')

/** Deepest member that is looked at, and how many of them: an envelope has some ten. */
const MAX_DEPTH = 8
const MAX_MEMBERS = 2_000

interface Member {
  path: JsonPath
  words: readonly string[]
  value: unknown
}

/** Returns what the members of a page, outside its items, say about the extent of the list. */
export function signsOfPage(page: unknown, items: JsonPath): ListSign[] {
  const members = isObject(page) ? membersOf(page, items) : []
  const isOwn = ({ path }: Member): boolean => /^(self|first|current)$/i.test(String(path.at(-1)))
  const own = new Set(members.filter(isOwn).map(({ value }) => value))
  const isEstimated = members.some(
    ({ words, value }) => value === true && words.some((word) => /^(estimat|approx)/.test(word)),
  )
  const number = ownNumberOf(members)
  return members.flatMap(({ path, words, value }) => {
    const isOwnText = own.has(value) && typeof value === 'string'
    const sign = isOwnText ? null : readMember(path, words, value, number)
    if (sign === null || (isEstimated && sign.kind === 'items')) return []
    const isLast = sign.kind === 'pages' && words.includes('last') && number !== null
    return [{ ...sign, name: path.join('.'), path, ...(isLast && { own: number }) }]
  })
}

/** Returns the number that a page gives itself; null where it gives none. */
function ownNumberOf(members: readonly Member[]): number | null {
  const own = members.find(
    ({ path, value }) => Number.isSafeInteger(value) && OWN_NUMBER.has(plainMember(String(path.at(-1)))),
  )
  return own === undefined ? null : Number(own.value)
}

/** Returns what the headers of a response say about the extent of its list. `isPart`: the status is 206. */
export function signsOfHeaders(headers: Readonly<Record<string, unknown>>, isPart: boolean): ListSign[] {
  return Object.entries(headers).flatMap(([name, value]) => {
    // `items 0-24/*` says neither that there is more nor that there is not; the status may.
    const silent = isPart ? /^\s*bytes/i : /^\s*bytes|\/\s*\*\s*$/i
    const isSilent = name === 'content-range' && silent.test(String(value))
    const inner = JSON_HEADER.test(name) ? objectIn(value) : null
    if (inner !== null)
      return signsOfPage(inner, NOWHERE).map((sign) => ({
        ...sign,
        name: `the header ${name} (${sign.name})`,
        path: null,
      }))
    const sign = KNOWN_HEADERS.has(name) || isSilent ? null : readNamed(name, plainWords(name), value)
    return sign === null ? [] : [{ ...sign, name: `the header ${name}`, path: null }]
  })
}

/** Headers that may contain members of a page as JSON (`X-Pagination`). */
const JSON_HEADER = /pag|list|cursor|result/
const NOWHERE: JsonPath = ['']

function objectIn(value: unknown): object | null {
  if (typeof value !== 'string' || !/^\s*\{/.test(value)) return null
  try {
    const inner: unknown = JSON.parse(value)
    return isObject(inner) ? inner : null
  } catch {
    return null
  }
}

/** Returns whether a sign speaks of more than was read. `isEnded`: the end is stated, so that a cursor says nothing. */
export function saysMore(
  { kind, value, name, own }: ListSign,
  { items, shown, pages }: ReadSoFar,
  isEnded: boolean,
): boolean {
  if (kind === 'more') return true
  if (kind === 'unread') return false
  if (kind === 'cursor') return !isEnded
  const count = Number(value)
  // `{"page": {"total": 18}}` counts pages, all items, or those at hand.
  if (kind === 'either') return count !== pages && (count > items || (count > pages && count < shown))
  if (kind === 'items') return count > items
  if (own !== undefined) return count > own
  // `page_count` is, for some services, the number of items on the page.
  return count > pages && !(count === shown && /count/i.test(name) && !/total/i.test(name))
}

/** Returns whether a sign that is not understood may say that more than these items exist; no page beside items is unclear. */
export function maySayMore({ kind, value }: ListSign, items: number): boolean {
  if (kind !== 'unread') return false
  return typeof value === 'string' || value > Math.max(1, items) || (value === 0 && items > 0)
}

/** Returns whether a number says that all was read. A number that may be a position in the list says nothing. */
export function saysAll(
  { kind, value, isWhole, own }: ListSign,
  { items, pages }: Pick<ReadSoFar, 'items' | 'pages'>,
): boolean {
  const count = Number(value)
  if (kind === 'items') return isWhole && count === items
  if (kind !== 'pages') return false
  // Pages may be numbered from 0: the number of the last page alone says nothing.
  return own === undefined ? isWhole && count === pages : count === own
}

/** Returns a sign in words. */
export function describeSign({ name, kind, value }: ListSign): string {
  if (kind === 'items') return `${name} says ${value} items`
  if (kind === 'pages') return `${name} says ${value} pages`
  if (kind === 'either' || kind === 'unread') return `${name} is ${value}`
  return kind === 'more' ? `${name} is ${value}` : `${name} may lead to more`
}

/** Returns whether a name may be that of a cursor (`resume_key`, `X-Next-Cursor`). */
export function isOnwardName(name: string): boolean {
  const words = plainWords(name)
  return words.some((word) => ONWARD.has(word)) && !words.some((word) => OTHER.has(word))
}

/** Returns whether a name has a word of another meaning: a size, a time, a previous page, a limit of requests. */
export function isOtherName(name: string): boolean {
  return plainWords(name).some((word) => OTHER.has(word))
}

function membersOf(page: object, items: JsonPath): Member[] {
  const found: Member[] = []
  const visit = (fields: object, above: JsonPath, inherited: readonly string[]): void => {
    for (const [key, value] of Object.entries(fields) as [string, unknown][]) {
      const path = [...above, key]
      if (isSamePath(path, items) || ASIDE.has(key.toLowerCase())) continue
      if (found.length >= MAX_MEMBERS) return
      const own = plainWords(key)
      const words = own.some(isSignWord) ? withPages(own, inherited) : [...inheritedBy(own, inherited), ...own]
      const lead = leadIn(key, value)
      if (lead !== null) found.push({ path, words: ['next'], value: lead })
      else if (!isObject(value)) found.push({ path, words, value })
      else if (path.length < MAX_DEPTH && !own.some((word) => OTHER_ABOVE.has(word)))
        visit(value, path, [...inherited, ...own])
    }
  }
  visit(page, [], [])
  return found
}

/** Names of objects and lists that lead on: `{"next": {"startIndex": 25}}`, `{"LastEvaluatedKey": {…}}`, `{"search_after": [25]}`. */
const LEADING =
  /^(next(page\w*|cursor|token|links?|key|set|batch|offset|start\w*|position|marker|request|params|query)?|lastevaluatedkey|searchafter|continue|continuation)$/
/** Names within them that do not lead on alone. */
const BESIDE_LEAD = /limit|size|count|total|^per|^rel$|type|title|method|format|templated/

/** Returns whether a member of an object that leads on may be the way to the next page. */
export function isLead(name: string, value: unknown): boolean {
  return !BESIDE_LEAD.test(plainMember(name)) && !isNone(value) && value !== false
}

/** Returns whether a name is that of an object or list that leads on. */
export function isLeading(name: string): boolean {
  return LEADING.test(plainMember(name))
}

/** Returns a value within an object or list that leads on by its name; null: it has none, or is no such object or list. */
function leadIn(key: string, value: unknown): string | null {
  if (typeof value !== 'object' || value === null || !isLeading(key)) return null
  const given = Object.entries(value).find(([name, one]: [string, unknown]) => isLead(name, one))
  return given === undefined ? null : JSON.stringify(given[1])
}

/** Words of a value that is the one of the object above: `{"total": {"value": 437}}`, not `{"totals": {"high": 12}}`. */
const VALUE_WORDS = setOf('value number num exact all overall item result record element entry hit doc row')

function inheritedBy(own: readonly string[], above: readonly string[]): string[] {
  const isValue = own.every((word) => VALUE_WORDS.has(word))
  const counts = isValue && above.includes('count') && own.includes('all') ? ['total'] : []
  const words = above.filter((word) => INHERITED.has(word) && (isValue || word !== 'total'))
  return [...words, ...counts]
}

function isSignWord(word: string): boolean {
  return QUANTITY.has(word) || ONWARD.has(word)
}

/** Returns the words of a name with `page`, where it is a member of such an object: `{"page": {"of": 18}}`. */
function withPages(own: readonly string[], inherited: readonly string[]): readonly string[] {
  const counts = own.some((word) => IN_PAGE.has(word))
  return counts && inherited.includes('page') && !own.includes('page') ? [...own, 'page', ABOVE] : own
}

/** Marks that the word `page` is that of the object above. */
const ABOVE = '^'
const IN_PAGE = setOf('of last count total')

type Said = Pick<ListSign, 'kind' | 'value' | 'isWhole'> | null

/** Returns what a member says. `own`: the page's own number; the last page may be 0 where pages count from 0. */
function readMember(path: JsonPath, words: readonly string[], value: unknown, own: number | null): Said {
  const name = String(path.at(-1))
  const sign = readNamed(name, words, value) ?? readUnnamed(path, words, value)
  if (sign !== null || value !== 0 || OWN_NUMBER.has(plainMember(name))) return sign
  const none = quantity(words, 0)
  const isLast = (own ?? 0) > 0 && /^last,page(,\^)?$/.test(words.join())
  return none?.kind === 'pages' && (none.isWhole || isLast) ? said('unread', 0) : null
}

/** Returns what a value under a name says; the page's own number (`"page": 1`) is none of all pages. */
function readNamed(name: string, words: readonly string[], value: unknown): Said {
  const sign = readSign(words, value)
  const isOwn = OWN_NUMBER.has(plainMember(name)) && /^\s*\d+\s*$/.test(String(value))
  return sign !== null && isOwn ? { ...sign, isWhole: false } : sign
}

/** Returns what a value under a name of these words says; null: nothing of more. */
function readSign(words: readonly string[], written: unknown): Said {
  const value = plainValue(written)
  if (!words.some(isSignWord) || words.some((word) => OTHER.has(word)) || isNone(value)) return null
  const truth = truthOf(value) ?? (String(value) === '1' && words.some((word) => FLAG.has(word)) ? true : null)
  if (truth !== null) {
    const wanted = truth ? MORE_IF_TRUE : MORE_IF_FALSE
    return words.some((word) => wanted.has(word)) ? said('more', String(truth)) : null
  }
  if (typeof value === 'number' && words.includes('more')) return said('more', value)
  const leads = words.some((word) => ONWARD.has(word))
  if (typeof value === 'number' || /^\d{1,15}$/.test(String(value)))
    return leads && !words.includes('total') && !words.includes('remain')
      ? said('cursor', String(value))
      : quantity(words, Number(value))
  if (typeof value !== 'string' || isDate(value)) return null
  return readText(words, value, leads)
}

/** A text for people that counts: `Showing 1-25 of 437`, `Page 1 of 18`. */
const COUNTING = /(\bpages?\s+)?\d+\s+(?:out )?of\s+(?:about |over |more than )?(\d{1,15})\b/i
/** Names of a number that has another meaning, in addition to `OTHER`. */
const OTHER_NUMBER = setOf(
  'id code status http error revision epoch seed year month day hour minute offset skip index position page user account org ' +
    'organization tenant severity critical high medium low score priority port max min maximum minimum',
)
/** The largest number that may be that of a list's items: larger ones are times, ids and sizes. */
const LARGEST = 100_000_000
/** Flags that may be about the end, and say "more" when false. */
const ENDING =
  /^(?:is|has|was)?(?:ended|endof\w+|endreached|reachedend|completed?|exhaust(?:ive|ed)|whole|allreturned)$/

/** Returns what a value says under a name that says nothing: a text that counts, and what may be about the list. */
function readUnnamed(path: JsonPath, words: readonly string[], written: unknown): Said {
  // The size of the list, or of its page.
  const isSize = path.length === 1 && /^(size|length)$/.test(words.join())
  if (!isSize && words.some((word) => OTHER.has(word))) return null
  const value = plainValue(written)
  if (truthOf(value) === false) return ENDING.test(words.join('')) ? said('unread', 'false') : null
  if (typeof value === 'string') {
    const [, pages, count] = COUNTING.exec(value) ?? []
    if (count !== undefined) return said(pages === undefined ? 'items' : 'pages', Number(count))
  }
  const isNumber = typeof value === 'number' || (typeof value === 'string' && /^\d{1,9}$/.test(value))
  if (!isNumber || words.some((word) => OTHER_NUMBER.has(word))) return null
  const count = Number(value)
  if (!Number.isInteger(count) || count <= 0 || count > LARGEST) return null
  return words.some((word) => word !== 'row' && ITEM.test(word)) ? said('items', count) : said('unread', count)
}

function readText(words: readonly string[], text: string, leads: boolean): Said {
  if (leads || isPageUrl(text)) return said('cursor', text)
  const [, count] = /\d\s*(?:\/|\bof\b)\s*(\d{1,15}|\*)/i.exec(text) ?? []
  if (count === '*') return said('cursor', text)
  if (count !== undefined) return quantity(words, Number(count), true)
  if (words.includes('last') || words.includes('page')) return said('cursor', text)
  if (words.includes('of') || words.includes('done')) return null
  const [number] = /\d{1,15}/.exec(text) ?? []
  if (number === undefined || BOUND.test(text)) return said('more', text.slice(0, 40))
  return quantity(words, Number(number))
}

/** A number that is exceeded: `25+`, `>25`, `more than 25`. */
const BOUND = /\d\s*\+|[>≥]|\b(?:over|more|least)\b/i

/** Returns a number of items or pages; what remains is more than was read, whatever that is. `isOf`: it is `a of b`. */
function quantity(words: readonly string[], count: number, isOf = false): Said {
  if (words.includes('remain')) return said('more', count)
  const ofPages = words.includes('page') && !words.some((word) => ITEM.test(word))
  const isPlain = words.every((word) => WHOLE_WORDS.has(word))
  if (!ofPages) return said('items', count, isOf || (isPlain && words.includes('total')))
  if (words.includes(ABOVE) && (words.includes('total') || words.includes('count'))) return said('either', count)
  const isCount = words.includes('total') || words.includes('of') || words.length === 1
  return said('pages', count, isOf || (isPlain && isCount))
}

const ITEM = /^(item|element|result|record|entry|entries|hit|row)$/

function said(kind: ListSign['kind'], value: ListSign['value'], isWhole = false): NonNullable<Said> {
  return { kind, value, isWhole }
}

/** Returns the only value of an array, and a number without separators of thousands: `["437"]`, `1,437`. */
function plainValue(value: unknown): unknown {
  if (Array.isArray(value) && value.length === 1 && !isObject(value[0])) return value[0] as unknown
  if (typeof value !== 'string' || value.length > 100) return value
  return value.replace(/(?<=\d)[,'_\u00a0\u202f](?=\d{3}(?!\d))/g, '')
}

function isNone(value: unknown): boolean {
  if (value === null || value === undefined || value === 0 || value === '') return true
  if (Array.isArray(value)) return true
  return typeof value === 'string' && NONE.has(value.trim().toLowerCase())
}

function isDate(text: string): boolean {
  return /^\d{4}-\d\d-\d\d/.test(text) || /^[A-Z][a-z]{2}, \d/.test(text)
}

/** Splits a name into words in the singular, also one that is written without separators. */
function plainWords(name: string): string[] {
  return wordsOf(name).flatMap((word) => {
    const pieces = GLUED.test(word) ? (word.match(PIECES) ?? [word]) : [word]
    return pieces.map((piece) => SINGULAR.get(piece) ?? piece)
  })
}

const SINGULAR = new Map(
  'pages tokens cursors totals counts items results records elements hits rows bytes seconds requests credits calls shards'
    .split(' ')
    .map((plural) => [plural, plural.slice(0, -1)] as const),
)
for (const word of ['remaining', 'remainder', 'omitted', 'left', 'rest']) SINGULAR.set(word, 'remain')
SINGULAR.set('expires', 'expire')
