import { MirrorError } from '../../base/errors.ts'
import { LAST_ID_PARAMS, OFFSET_PARAMS, isPosition, placesOf, positionIn } from '../../base/json/list-names.ts'
import { isLead, isLeading, isOnwardName, isOtherName } from '../../base/json/list-signs.ts'
import type { JsonPath } from '../../base/json/slices.ts'
import { statusOf } from '../http/errors.ts'
import { keyOfCursor, nextLink, targetOf } from './page-key.ts'
import type { ReadPage } from './page.ts'

/** Requests a page as a probe; null when there is nothing new. */
export type Ask = (target: string) => Promise<ReadPage | null>

/** A way to request the page after another. */
export interface NextPageAttempt {
  param: string
  value: string
  byId: boolean
  /** Position in the envelope that contains the value. */
  at?: JsonPath
  /** Number of the list's first page, where the value is the number of a page. */
  firstPage?: 0 | 1
}

/** A successful attempt; `ends`: nothing follows the page, or, with `isRefused`, what would follow is refused. */
export interface FoundPage {
  attempt: NextPageAttempt
  ends: boolean
  isRefused?: boolean
}

/** The parameter of most services that number their pages. */
const PAGE_PARAM = 'page'
/** Parameters that fewer services use; all are requested at once first, as they change nothing in a list of one page. */
const RARE_OFFSETS: readonly string[] = ['skip', 'start', 'from']
const RARE_PAGES: readonly string[] = [
  'page[number]',
  'pageNumber',
  'p',
  'pg',
  'page_no',
  'pageNo',
  'page_number',
  'pageIndex',
  'page_index',
]

/** What a request for another page gave. `other`: items that were not on the page, in a way that cannot be followed. */
type Gave = 'same' | 'nothing' | 'refused' | 'other'

/** A list whose next page is searched for. */
interface Sought {
  path: string
  limit: number
  /** An item's own identifier, by its bytes; null when it has none. */
  idOf: (item: Buffer) => string | null
}

/** Creates a search for the way to request the next page of a list whose pages do not name it. */
export function createSeeker(list: Sought, ask: Ask) {
  const { path, idOf } = list
  const outcomes = new Map<string, Gave>()
  let one: Promise<ReadPage | null> | null = null
  const note = ({ param, value }: NextPageAttempt, page: ReadPage, answer: ReadPage | null): Gave => {
    const outcome = compare(page, answer)
    outcomes.set(`${param}=${value.slice(0, 40)}`, outcome)
    return outcome
  }
  const requestOne = (): Promise<ReadPage | null> => (one ??= probe(ask, `${path}?limit=1`))
  const lastId = ({ items }: ReadPage): string | null => {
    const last = items.at(-1)
    return last === undefined ? null : idOf(last)
  }
  /** Returns the first attempt that returns new items, or nothing where the list ends. */
  const first = async (attempts: readonly NextPageAttempt[], page: ReadPage): Promise<FoundPage | null> => {
    for (const attempt of attempts) {
      const found = await tryOne(list, ask, attempt, page, note)
      if (found !== null) return found
    }
    return null
  }
  const numbered = async (page: ReadPage, params: readonly string[]): Promise<FoundPage | null> => {
    for (const param of params) {
      const found = await byNumber(list, ask, param, page, note)
      if (found !== null) return found
    }
    return null
  }
  return {
    lastId,
    /** Returns a request whose outcome was this one; null: there was none. */
    gave: (wanted: Gave): string | null => [...outcomes].find(([, outcome]) => outcome === wanted)?.[0] ?? null,
    /** Returns the ways to request a next page: values of the envelope, the last id, the number of items. */
    attempts: (page: ReadPage, collected: number): NextPageAttempt[] => [
      ...textsOfPage(page),
      ...positionsOfPage(page, collected),
      ...countedWays(lastId(page), collected, LAST_ID_PARAMS),
    ],
    /** Returns the ways of the contract and of services that count, without those of the envelope. */
    fewAttempts(page: ReadPage, collected: number, offsets: number): NextPageAttempt[] {
      const ids = LAST_ID_PARAMS.slice(0, 1)
      const own = positionsOfPage(page, collected)
      return [...own, ...countedWays(lastId(page), collected, ids, OFFSET_PARAMS.slice(0, offsets))]
    },
    first,
    /** Returns the way by page numbers, or by rare parameters; null when there is none. */
    async numbered(page: ReadPage, collected: number): Promise<FoundPage | null> {
      const found = await numbered(page, [PAGE_PARAM])
      if (found !== null) return found
      const offsets = countedWays(null, collected, [], RARE_OFFSETS)
      const pages = RARE_PAGES.map((param) => ({ param, value: '2' }))
      const query = [...offsets, ...pages].map(({ param, value }) => `${param}=${value}`).join('&')
      const answer = await probe(ask, `${targetOf(path, list.limit, null)}${list.limit === 0 ? '?' : '&'}${query}`)
      if (compare(page, answer) === 'same') return null
      return (await first(offsets, page)) ?? (await numbered(page, RARE_PAGES))
    },
    /** Requests a page of one item, once. Returns null when it is refused. */
    one: requestOne,
    /** The same request, where it was sent; null otherwise. */
    askedOne: (): Promise<ReadPage | null> | null => one,
  }
}

/** Notes what became of an attempt. */
type Note = (attempt: NextPageAttempt, page: ReadPage, answer: ReadPage | null) => Gave

async function tryOne(
  list: Sought,
  ask: Ask,
  attempt: NextPageAttempt,
  page: ReadPage,
  note: Note,
): Promise<FoundPage | null> {
  const answer = await answerTo(list, ask, attempt)
  const outcome = note(attempt, page, answer)
  if (isOther(page, answer) && !isShifted(attempt, page, answer)) return { attempt, ends: false }
  // An empty response can also mean that the value was not understood.
  const mayEnd = outcome === 'nothing' && page.shape.more !== true
  const ends = mayEnd && (await isUnderstood(list, ask, attempt, page))
  return ends ? { attempt, ends } : null
}

function answerTo({ path, limit }: Sought, ask: Ask, { param, value }: NextPageAttempt): Promise<ReadPage | null> {
  return probe(ask, targetOf(path, limit, keyOfCursor(path, limit, param, value)))
}

/** Returns whether a page is not where it was asked for, in a list whose pages say that they count from 1. */
function isShifted({ param, value }: NextPageAttempt, page: ReadPage, answer: ReadPage | null): boolean {
  return positionOf(page, param) === 1 && answer !== null && positionOf(answer, param) !== Number(value)
}

/** Returns the page's own position under the name of a parameter; null: it gives none. */
export function positionOf({ value, shape }: ReadPage, param: string): number | null {
  return positionIn(value, shape.itemsPath, param)
}

/** Returns whether upstream supports the parameter: after the first item it must return the second. */
async function isUnderstood(list: Sought, ask: Ask, attempt: NextPageAttempt, page: ReadPage): Promise<boolean> {
  const [first, second] = page.items
  const behindFirst = positionOf(page, attempt.param) === 1 ? '2' : '1'
  const value = first === undefined || !attempt.byId ? behindFirst : list.idOf(first)
  if (second === undefined || value === null || attempt.at !== undefined) return false
  const answer = await answerTo(list, ask, { ...attempt, value })
  return answer?.items[0]?.equals(second) === true
}

/** Returns the way by page numbers: the second page must have other items, and the first page the items at hand. */
async function byNumber(list: Sought, ask: Ask, param: string, page: ReadPage, note: Note): Promise<FoundPage | null> {
  const attempt = { param, value: '2', byId: false, firstPage: 1 } as const
  const second = await answerTo(list, ask, attempt)
  if (note(attempt, page, second) === 'same') return null
  const first = await answerTo(list, ask, { ...attempt, value: '1' })
  const isNew = isOther(page, second)
  if (compare(page, first) === 'same' || (isNew && first === null))
    return { attempt, ends: !isNew, isRefused: second === null }
  const fromZero = { ...attempt, value: '1', firstPage: 0 } as const
  return isOther(page, first) ? { attempt: fromZero, ends: false } : null
}

/** Returns whether a header of a page names the next one. */
export function namesInHeader({ link, headerNext }: ReadPage): boolean {
  return nextLink(link) !== null || headerNext !== null
}

/** Returns whether a page of one item says that there is another: then a page that says nothing is the last. */
export function saysNext(page: ReadPage): boolean {
  const { items, shape } = page
  return items.length === 1 && (shape.next !== null || shape.more === true || namesInHeader(page))
}

function countedWays(
  id: string | null,
  collected: number,
  params: readonly string[],
  offsets = OFFSET_PARAMS,
): NextPageAttempt[] {
  const ids = id === null ? [] : params.map((param) => ({ param, value: id, byId: true }))
  const counts = offsets.map((param) => ({ param, value: String(collected), byId: false }))
  return [...ids, ...counts]
}

/** Returns whether an answer has items, none of them the page's first, and some that the page has not. */
function isOther(page: ReadPage, answer: ReadPage | null): boolean {
  const [first] = page.items
  if (answer === null || answer.items.some((item) => first?.equals(item) === true)) return false
  return hasNew(page, answer)
}

function hasNew(page: ReadPage, answer: ReadPage): boolean {
  const known = new Set(page.items.map((item) => item.toString('latin1')))
  return answer.items.some((item) => !known.has(item.toString('latin1')))
}

function compare(page: ReadPage, answer: ReadPage | null): Gave {
  if (answer === null) return 'refused'
  if (hasNew(page, answer)) return 'other'
  const [first] = page.items
  const isSame = first !== undefined && answer.items[0]?.equals(first) === true
  return isSame ? 'same' : 'nothing'
}

/** Returns parameters suggested by a cursor's name: `next_page_token` → `page_token`, `next_cursor` → `cursor`. */
export function paramsOf(field: string, value = ''): string[] {
  const bare = field.replace(/^next[_-]?/i, '')
  const small = bare.charAt(0).toLowerCase() + bare.slice(1)
  const counts = /^\d+$/.test(value) ? ['page', ...OFFSET_PARAMS, 'start'] : []
  const own = [small, field, ...counts, 'cursor', 'page_token', 'next'].filter((name) => name !== '')
  return [...new Set(own)].filter((name) => name !== 'after')
}

/** Values of unknown names that are tried as a cursor. */
const MAX_TEXTS = 3

/**
 * Returns values of the envelope with unknown names: one of them may be the cursor, for `after` or for a parameter of its
 * own name. Excludes members that describe the response itself.
 */
export function textsOfPage({ value, shape }: ReadPage): NextPageAttempt[] {
  const fit = placesOf(value, shape.itemsPath).filter((place) => {
    const { path, name } = place
    if (name === shape.itemsPath[0] || typeof path.at(-1) === 'number') return false
    const last = String(path.at(-1))
    if (isInNext(path)) return isLead(last, place.value) && isValue(place.value, 'cursor')
    if (isInCursor(path)) return !isOtherName(last) && isValue(place.value, 'cursor')
    const isOwn = OWN.test(name) || (path.length > 1 && !isOnwardName(last))
    return !isOwn && isValue(place.value, last)
  })
  return fit.slice(0, MAX_TEXTS).flatMap(({ path, value: text }) => {
    const name = String(path.at(-1))
    const isNamed = isOnwardName(name) || isInCursor(path) || isInNext(path)
    const params = isNamed ? ['after', ...paramsOf(name)] : ['after', name]
    return params.map((param) => ({ param, value: String(text), byId: false, at: path }))
  })
}

/** Returns whether a position is within a cursor object: `{"cursor": {"token": "…"}}`. */
function isInCursor(path: JsonPath): boolean {
  return path.length > 1 && /cursor$/i.test(String(path.at(-2)))
}

/** Returns whether a position is within an object that leads on: `{"next": {"startIndex": 25}}`. */
function isInNext(path: JsonPath): boolean {
  return path.length > 1 && isLeading(String(path.at(-2)))
}

/** Returns the ways of a page that says itself where it begins: on the first at 0 (`{"startAt": 0}`), or at 1. */
function positionsOfPage({ value, shape }: ReadPage, collected: number): NextPageAttempt[] {
  const own = placesOf(value, shape.itemsPath).filter((place) => isPosition(place.name))
  return own.flatMap(({ path, value: at }) => {
    if (at !== 0 && at !== 1) return []
    return [{ param: String(path.at(-1)), value: String(collected + at), byId: false }]
  })
}

function isValue(value: unknown, name: string): boolean {
  if (typeof value === 'number') return isOnwardName(name)
  return typeof value === 'string' && value !== '' && value.length <= 1024
}

/** Member names that describe the response itself. */
const OWN = /^(id|object|type|kind|status|message|self|url|version|requestid|traceid|\w*at)$/

/** Returns null for a rejected request: upstream does not support the parameter, or the value. */
async function probe(ask: Ask, target: string): Promise<ReadPage | null> {
  try {
    return await ask(target)
  } catch (error) {
    const status = statusOf(error)
    if (status !== null && status >= 400 && status < 500 && status !== 429) return null
    if (error instanceof MirrorError && error.code === 'upstream_shape') return null
    throw error
  }
}
