import type { Onward } from '../../base/json/envelope.ts'
import { describeSign, maySayMore, saysAll, saysMore } from '../../base/json/list-signs.ts'
import type { JsonPath } from '../../base/json/slices.ts'
import type { Next } from './cursor.ts'
import { type Seen, isUsualSize } from './evidence.ts'
import { type PageKey, targetOf } from './page-key.ts'
import type { KnownList, Probed, ReadPage } from './page.ts'

/** The next step of a walk. */
export interface Step {
  /** The page to request; null: the walk ends. */
  next: PageKey | null
  /** Position that was found to contain the cursor: the list must be read again with it. */
  cursorPath?: JsonPath
}

/** Options of a list's requests, with what earlier walks learned. */
export interface TrailOptions {
  /** Root URL of the surface, without a slash at the end. */
  root: string
  path: string
  limit: number
  known: KnownList
  /** An item's own identifier, by its bytes; null when it has none. */
  idOf: (item: Buffer) => string | null
}

/** State of a walk. */
export interface WalkState {
  onward: Onward
  /** Target of the last request. */
  asked: string
  before: { page: ReadPage; next: Next | null } | null
  /** The last page that was read; null: it was unchanged. */
  last: ReadPage | null
  collected: number
  pages: number
  /** Items on the page before the last one. */
  shownBefore: number
  /** Most items on a page before the last one; 0: there is none. */
  mostBefore: number
  /** Whether an earlier page of this walk named the next one: then a page that names none is the last. */
  named: boolean
  /** What was seen at the end; completed there. */
  seen: Omit<Seen, 'items' | 'total' | 'more' | 'unread'> & { more: string[] }
  /** What probes showed; null: none were sent, or they were not answered. */
  probed: Probed | null
  /** Whether pages state an end, or a total, that says nothing: a page of one item states the same; null: not known. */
  statesNothing: boolean | null
  /** Whether the page of one item, which was asked for, names the next one in a header. */
  oneByHeader: boolean
}

const PLAIN: Onward = { param: null, byId: false, header: false, silent: false }
/** The step that ends a walk. */
export const END: Step = { next: null }

/** Creates the state of a walk that has not started. */
export function createWalkState({ path, limit, known }: TrailOptions): WalkState {
  const seen: WalkState['seen'] = {
    shown: 0,
    asked: limit,
    unfollowed: null,
    more: [],
    end: null,
    circles: null,
    lacks: null,
    flaw: null,
    limitKept: null,
    otherPages: null,
  }
  return {
    onward: { ...PLAIN, ...known.onward },
    asked: targetOf(path, limit, null),
    before: null,
    last: null,
    collected: 0,
    pages: 0,
    shownBefore: 0,
    mostBefore: 0,
    named: false,
    seen,
    probed: known.probed,
    statesNothing: known.statesNothing,
    oneByHeader: false,
  }
}

/**
 * Returns whether the last page itself shows the end of its list, so that it shows it again while it is unchanged. Headers and what
 * was found behind it do not: a list that grows by its end leaves a full page as it is.
 */
export function isEndInPage({ seen, last, onward, oneByHeader, collected, pages }: WalkState): boolean {
  if (seen.end === 'stated' || last === null) return true
  if (seen.end === 'empty') return last.items.length === 0
  const { signs, shape, total } = last
  const inBody = signs.filter(({ path }) => path !== null)
  const isCountedThere = shape.totalPath !== null && total === collected
  if (seen.end === 'counted') return isCountedThere || inBody.some((sign) => saysAll(sign, { items: collected, pages }))
  const isByHeader = isNamedByHeader(onward) || oneByHeader
  return !isByHeader && (seen.end === 'unnamed' || inBody.length === signs.length)
}

/** Returns whether headers name the next page. */
export function isNamedByHeader({ header, headerName }: Onward): boolean {
  return header || headerName !== undefined
}

/** Ends a walk with how the service ends the list; a value that may be a cursor then says nothing. */
export function endBy(way: WalkState, end: Seen['end']): Step {
  way.seen.end = end
  if (way.last !== null && end !== null) way.seen.more = openSigns(way, way.last, true)
  return END
}

/** Ends a walk with what probes showed, by this walk or an earlier one. */
export function endProbed(way: WalkState, probed: Probed | null): Step {
  way.probed = probed
  way.seen.limitKept = probed?.limitKept ?? null
  way.seen.otherPages = probed?.otherPages ?? null
  return END
}

/** Returns what a page says of more than was read, in words. */
export function openSigns(way: WalkState, page: ReadPage, isEnded: boolean): string[] {
  const read = { items: way.collected, shown: page.items.length, pages: way.pages }
  const open = page.signs.filter((sign) => saysMore(sign, read, isEnded)).map(describeSign)
  const isFlagged = page.shape.more === true && page.shape.next === null
  return isFlagged ? ['it indicates that there is more', ...open] : open
}

/** Returns what the last page says that is not understood and may say that there is more; null: nothing. A page size says none. */
export function unreadSign({ last, collected, seen }: WalkState): string | null {
  const isSize = (value: unknown): boolean => value === seen.asked || isUsualSize(Number(value))
  const found = last?.signs.find((sign) => maySayMore(sign, collected) && !isSize(sign.value))
  return found === undefined ? null : describeSign(found)
}

/** Returns whether the numbers of a page are those of what was read: its total, or its number of pages. */
export function isAllCounted(way: WalkState, { total, signs, shape }: ReadPage): boolean {
  if (total === way.collected) return true
  if (shape.isEstimate || total !== null) return false
  return signs.some((sign) => saysAll(sign, { items: way.collected, pages: way.pages }))
}

/** Returns whether the last page is full, as far as it is known how many items a page has: then there may be more. */
export function isLastFull({ limit }: TrailOptions, { seen: { shown }, mostBefore }: WalkState): boolean {
  return (limit > 0 && shown >= limit) || (mostBefore > 0 ? shown >= mostBefore : isUsualSize(shown))
}

/** Continues with a page. */
export function goTo({ path, limit }: TrailOptions, way: WalkState, key: PageKey): Step {
  way.asked = targetOf(path, limit, key)
  return { next: key }
}
