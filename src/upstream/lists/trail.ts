import type { Onward } from '../../base/json/envelope.ts'
import { isOffset } from '../../base/json/list-names.ts'
import { MirrorError } from '../../base/errors.ts'
import { counted } from '../../base/text.ts'
import { statusOf } from '../http/errors.ts'
import type { Next } from './cursor.ts'
import { type Seen, isUsualSize } from './evidence.ts'
import {
  type Ask,
  type FoundPage,
  type NextPageAttempt,
  createSeeker,
  namesInHeader,
  paramsOf,
  positionOf,
  saysNext,
  textsOfPage,
} from './next-page.ts'
import { type PageKey, keyOfCursor, keyOfUrl, nextLink } from './page-key.ts'
import type { Probed, ReadPage } from './page.ts'
import {
  END,
  type Step,
  type TrailOptions,
  type WalkState,
  createWalkState,
  endBy,
  endProbed,
  goTo,
  isAllCounted,
  isEndInPage,
  isLastFull,
  isNamedByHeader,
  openSigns,
  unreadSign,
} from './state.ts'

/** Follows one list from page to page: by what each page names, otherwise by probing. */
export function createTrail(options: TrailOptions, ask: Ask) {
  const way = createWalkState(options)
  const { onward, seen } = way
  const { seeker, ...search } = createSearch(options, way, ask)
  return {
    onward: (): Onward => onward,
    /** What was seen until the end, and what probes showed. */
    seen: (): Seen => ({ ...seen, items: way.collected, total: null, unread: unreadSign(way) }),
    probed: (): Probed | null => way.probed,
    /** Whether the last page itself shows the end. */
    isEndInPage: (): boolean => isEndInPage(way),
    /** Whether what its pages state of an end, or a total, says nothing; null: not known. */
    statesNothing: (): boolean | null => way.statesNothing,
    /** A page of one item; null: the walk did not ask for it. */
    askedOne: (): Promise<ReadPage | null> | null => seeker.askedOne(),
    /** Whether pages are requested by a number of items or pages: then a page that is not there is behind the last. */
    isCounting: (): boolean => isCounting(way),
    /** Records a page that equals the stored one, as does its successor. */
    kept(next: PageKey | null, entries: number): void {
      way.pages++
      way.collected += entries
      way.mostBefore = Math.max(way.mostBefore, seen.shown)
      seen.shown = entries
      way.named ||= next !== null && !isCounting(way)
      way.before = null
      way.last = null
      if (next !== null) goTo(options, way, next)
    },
    /** Returns the step after a page. */
    after(page: ReadPage): Promise<Step> {
      record(way, page)
      const step = isOwnWay(onward) ? null : followed(options, way, page)
      return step === null ? search.seekNext(page) : Promise.resolve(step)
    },
    /** Ends a walk by number or offset where the page after the last is empty, or is the last again. */
    beyond: (): Step => endBy(way, 'empty'),
    /** Ends it where that page is refused. */
    refused: (): Step => endBehind(options, way, true),
    /** Ends the walk where it leads to nothing new. */
    leave(why: string): null {
      if (isCounting(way) && way.pages > 2) endBy(way, 'empty')
      else seen.circles = why
      return null
    },
    /** Continues another way, or ends, where a page repeats what was read. */
    repeated: (page: ReadPage): Promise<Step> => leaveCircle(way, search, page),
    /**
     * Returns the cursor after which the same page was returned again: upstream does not support the parameter. Null
     * when it is another page, or another parameter was already found.
     */
    repeatedCursor(page: ReadPage): Next | null {
      const { before } = way
      if (before === null || onward.param !== null || before.next?.isUrl !== false) return null
      return isSame(page, before.page) ? before.next : null
    },
    /** The cursor of the second page, where the parameter for it is not known to be understood; null otherwise. */
    untriedCursor(): Next | null {
      const next = way.before?.next ?? null
      return way.pages === 1 && onward.param === null && next?.isUrl === false ? next : null
    },
    /** Finds the parameter that accepts a cursor; null when there is none. */
    learn: (cursor: Next): Promise<Onward | null> => learnParam(way, seeker, cursor),
  }
}

type Search = Omit<ReturnType<typeof createSearch>, 'seeker'>

async function leaveCircle(way: WalkState, search: Search, page: ReadPage): Promise<Step> {
  const { before, seen } = way
  if (page.items.length === 0 || (isCounting(way) && way.pages > 1)) return endBy(way, 'empty')
  if (isCounting(way) && before !== null) {
    // The way that led on before gives the first page again: it may not be understood any more.
    forgetWay(way)
    return search.seekNext(before.page)
  }
  const isFirst = before !== null && way.pages === 1
  const found = isFirst ? await search.seekOther(before.page) : null
  if (found !== null) return found
  if (isFirst && isPlaceOnly(before)) return search.endSame()
  if (way.last !== null) seen.more = openSigns(way, way.last, true)
  if (way.pages > 1 && seen.shown < way.shownBefore) return endBy(way, 'shorter')
  seen.circles = 'its cursor leads back to what was read, and its last page is full'
  return END
}

/** Returns whether the mirror counts pages or items itself; a cursor for `offset` that a page names is the service's. */
function isCounting({ onward, before }: WalkState): boolean {
  const counts = onward.firstPage !== undefined || isOffset(onward.param)
  return counts && (before === null || before.next === null)
}

/** Returns whether all that a page names is the place of its last item, which it has on the last page too. */
function isPlaceOnly({ page, next }: NonNullable<WalkState['before']>): boolean {
  const isPlace = /^(end_?cursor|last_?(id|key|item_?id|evaluated_?key))$/i.test(next?.field ?? '')
  return isPlace && page.signs.every(({ kind }) => kind === 'cursor' || kind === 'unread')
}

/** Returns whether pages are requested without what they name as the next one. */
function isOwnWay({ firstPage, own }: Onward): boolean {
  return firstPage !== undefined || own === true
}

function forgetWay({ onward }: WalkState): void {
  delete onward.firstPage
  delete onward.own
  Object.assign(onward, { param: null, byId: false })
}

function record(way: WalkState, page: ReadPage): void {
  const { onward, seen } = way
  way.pages++
  way.collected += page.items.length
  way.shownBefore = seen.shown
  way.mostBefore = Math.max(way.mostBefore, seen.shown)
  way.last = page
  if (seen.flaw?.isLasting !== true) seen.flaw = page.flaw
  seen.more = []
  seen.shown = page.items.length
  const next = page.shape.next ?? page.headerNext
  way.before = { page, next: isOwnWay(onward) ? null : next }
  onward.header ||= nextLink(page.link) !== null
  if (page.headerNext !== null) onward.headerName = page.headerNext.header
}

/** Follows what a page names as the next one; null where it names none. */
function followed(options: TrailOptions, way: WalkState, page: ReadPage): Step | null {
  const { path, limit } = options
  const next = page.shape.next ?? page.headerNext
  const link = nextLink(page.link)
  if (link === null && next === null) return null
  way.named = true
  if (link !== null) return follow(options, way, link)
  if (next === null) return END
  if (isUrl(options, next)) return follow(options, way, next.text)
  return goTo(options, way, keyOfCursor(path, limit, way.onward.param ?? 'after', next.text))
}

async function learnParam(
  { before, onward }: WalkState,
  seeker: ReturnType<typeof createSearch>['seeker'],
  { text, field }: Next,
): Promise<Onward | null> {
  if (before === null) return null
  const attempts = paramsOf(field, text).map((param) => ({ param, value: text, byId: false }))
  const found = await seeker.first(attempts, before.page)
  onward.param = found?.attempt.param ?? 'after'
  return found === null ? null : onward
}

function follow(options: TrailOptions, way: WalkState, text: string): Step {
  const to = keyOfUrl(options.root, { ...options, asked: way.asked }, text)
  if ('key' in to) return goTo(options, way, to.key)
  way.seen.unfollowed = `it names the next page ${to.refused}`
  return END
}

/**
 * Returns whether the next page is named by a URL: by its form, its name, or because it starts with the list's own
 * path.
 */
function isUrl({ root, path }: TrailOptions, next: Next): boolean {
  const own = new URL(root).pathname.replace(/\/$/, '') + path
  return next.isUrl || /url|link|href/i.test(next.field) || next.text.startsWith(own)
}

function isSame(one: ReadPage, other: ReadPage): boolean {
  const [first] = other.items
  return first !== undefined && one.items[0]?.equals(first) === true
}

/** What a search for the next page works with. */
interface Searching {
  options: TrailOptions
  way: WalkState
  seeker: ReturnType<typeof createSeeker>
}

/** Creates the search for the next page of a list whose pages do not name it. */
function createSearch(options: TrailOptions, way: WalkState, ask: Ask) {
  const search: Searching = { options, way, seeker: createSeeker(options, ask) }
  return {
    seeker: search.seeker,
    /** Continues after a page that names no next one: by what is known of the list, otherwise by probing. */
    seekNext: (page: ReadPage): Promise<Step> => seekNext(search, page),
    /** Ends a list where every request gave the same items. */
    endSame(): Step {
      const isSame = search.seeker.gave('other') === null
      const probed = {
        items: way.collected,
        limitKept: null,
        otherPages: 'the same items',
      } as const
      if (isSame) return endProbed(way, probed)
      way.seen.more = ['a request for another page gave other items']
      return END
    },
    /** Continues a list whose cursor leads back to its first page, in another way; null: there is none. */
    async seekOther(page: ReadPage): Promise<Step | null> {
      const all = search.seeker.attempts(page, way.collected)
      const ways = all.filter(({ at }) => at === undefined)
      const step = await seek(search, page, ways, true)
      if (step !== null) way.onward.own = true
      return step
    },
  }
}

/** Returns how a page says that the list ends; null: it does not. `isNamed`: an earlier page named the next one. */
function endSaid(isStated: boolean, isNamed: boolean): 'stated' | 'unnamed' | null {
  if (isStated) return 'stated'
  return isNamed ? 'unnamed' : null
}

async function seekNext(search: Searching, page: ReadPage): Promise<Step> {
  const { way, seeker } = search
  const { seen } = way
  const { shape, items } = page
  // A cursor object without a cursor, beside a larger total, states no end.
  const isStated = shape.more === false && !way.statesNothing && !countsMore(way, page)
  const end = endSaid(isStated, way.named || isNamedByHeader(way.onward))
  seen.more = openSigns(way, page, end !== null)
  const isCounted = seen.more.length === 0 && !way.statesNothing && isAllCounted(way, page)
  const mayCount = !isStated && items.length > 0 && !isCounted
  const step = mayCount ? count(search, page) : null
  if (step !== null) return step
  const isVoid = (isStated || isCounted) && (await isMeaningless(search, page))
  if (end !== null && !isVoid) return endBy(way, end)
  if (isCounted && !isVoid) return endBy(way, 'counted')
  const isBeyond = way.pages > 1 && openSigns(way, page, true).length === 0
  if (items.length === 0 && shape.more !== true && (isBeyond || seen.more.length === 0))
    return endBy(way, isBeyond ? 'empty' : null)
  const isFull = page.total === null && shape.pageSize === items.length
  if (isFull) seen.more.push(`its last page is full (${counted(items.length, 'item')})`)
  if (seen.more.length === 0) return ifAnswered(probe(search, page), END)
  const byOne = shape.more !== true && items.length > 1 ? endByOne(search, await seeker.one()) : null
  if (byOne !== null) return byOne
  return (await seek(search, page, seeker.attempts(page, way.collected), true)) ?? END
}

/**
 * Returns whether the end, or the total, that a first page states says nothing, where it is as long as pages usually are: a page of
 * one item states the same of itself. It is asked for once for each list.
 */
async function isMeaningless({ way, seeker }: Searching, { items, total }: ReadPage): Promise<boolean> {
  if (way.statesNothing !== null || way.pages > 1 || items.length < 2 || !isUsualSize(items.length)) return false
  const one = await ifAnswered(seeker.one(), null)
  if (one?.items.length !== 1) return false
  const isSame = total === null ? one.shape.more === false : one.total === 1
  way.statesNothing = isSame && !saysNext(one)
  return way.statesNothing
}

/** Returns whether a page counts more items than were read, whatever else it says. */
function countsMore(way: WalkState, page: ReadPage): boolean {
  if (page.total !== null) return page.total > way.collected
  return openSigns(way, page, true).length > 0
}

/** Continues where the way to request pages is known, and pages do not name the next one. */
function count(search: Searching, page: ReadPage): Step | null {
  const { way, seeker } = search
  const { onward } = way
  if (onward.firstPage !== undefined) return go(search, onward.param, String(onward.firstPage + way.pages))
  if (onward.param !== null && isOffset(onward.param)) {
    const isFromOne = positionOf(page, onward.param) === way.collected - page.items.length + 1
    return go(search, onward.param, String(way.collected + (isFromOne ? 1 : 0)))
  }
  const id = onward.byId ? seeker.lastId(page) : null
  return id === null ? null : go(search, onward.param, id)
}

function go({ options, way }: Searching, param: string | null, value: string): Step {
  const { path, limit } = options
  return goTo(options, way, keyOfCursor(path, limit, param ?? 'after', value))
}

async function seek(
  search: Searching,
  page: ReadPage,
  attempts: readonly NextPageAttempt[],
  isNumbered: boolean,
): Promise<Step | null> {
  const { seeker, way } = search
  const found = take(search, await seeker.first(attempts, page))
  return found ?? (isNumbered ? take(search, await seeker.numbered(page, way.collected)) : null)
}

/** Takes a way that was found; null where none was. */
function take(search: Searching, found: FoundPage | null): Step | null {
  if (found === null) return null
  const { options, way } = search
  const end = (): Step => endBehind(options, way, found.isRefused === true)
  if (found.ends && way.pages > 1) return end() // the way that led here stays known
  const { param, value, byId, at, firstPage } = found.attempt
  const own = param === 'after' ? null : param
  Object.assign(way.onward, { param: own, byId, ...(firstPage !== undefined && { firstPage }) })
  if (found.ends) return end()
  const step = go(search, param, value)
  return at === undefined ? step : { ...step, cursorPath: at }
}

/** Ends a walk behind the last page: a page that is refused there may be one that a fault hides, where the last one is full. */
function endBehind(options: TrailOptions, way: WalkState, isRefused: boolean): Step {
  return endBy(way, isRefused && isLastFull(options, way) ? null : 'empty')
}

/** Searches for the next page of a list that does not say whether there is one; once for each list. */
async function probe(search: Searching, page: ReadPage): Promise<Step> {
  const { options, way, seeker } = search
  const { probed } = options.known
  const { collected } = way
  const isUsual = isUsualSize(collected) || page.items.length === options.limit
  if (probed !== null && isStillTrue(probed, collected, isUsual)) return endProbed(way, probed)
  if (collected < 2) return (await seek(search, page, textsOfPage(page), false)) ?? END
  const one = await seeker.one()
  const byOne = endByOne(search, one)
  if (byOne !== null) return byOne
  const limitKept = one === null ? null : one.items.length === 1
  const few = seeker.fewAttempts(page, collected, limitKept === true ? 2 : 1)
  const attempts = isUsual ? seeker.attempts(page, collected) : [...textsOfPage(page), ...few]
  const found = await seek(search, page, attempts, true)
  if (found !== null) return found
  way.onward.silent = limitKept === true
  const other = seeker.gave('other')
  if (other !== null) way.seen.more = [`a request with ${other} gave other items`]
  const isSame = seeker.gave('refused') === null && seeker.gave('nothing') === null
  const outcome = isSame ? 'the same items' : 'no answer'
  return endProbed(way, { items: collected, limitKept, otherPages: outcome })
}

/** Ends a list whose page of one item names the next one: a page that names none is then the last. Null for any other. */
function endByOne({ way }: Searching, one: ReadPage | null): Step | null {
  if (one === null || !saysNext(one)) return null
  way.oneByHeader = one.shape.next === null && namesInHeader(one)
  return endBy(way, 'unnamed')
}

/**
 * Returns whether what an earlier run probed holds for a list of this many items. One that is shorter, or has a usual
 * size, may have been cut since; and before, other pages of a list that keeps to "limit" were not asked for.
 */
function isStillTrue({ items, otherPages }: Probed, collected: number, isUsual: boolean): boolean {
  if (otherPages === null) return false
  return items === collected || (!isUsual && collected > items)
}

/** Leaves it open what probes show which the service fails to answer: the next run sends them again. */
async function ifAnswered<T>(probe: Promise<T>, otherwise: T): Promise<T> {
  try {
    return await probe
  } catch (error) {
    if (error instanceof MirrorError && (statusOf(error) ?? 0) >= 500) return otherwise
    throw error
  }
}
