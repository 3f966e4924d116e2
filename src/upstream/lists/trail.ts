import type { Onward } from '../../base/json/envelope.ts'
import { isOffset } from '../../base/json/list-names.ts'
import type { Next } from './cursor.ts'
import type { Seen } from './evidence.ts'
import { type Ask, paramsOf } from './next-page.ts'
import { type PageKey, keyOfCursor, keyOfUrl, nextLink } from './page-key.ts'
import type { Probed, ReadPage } from './page.ts'
import { createSearch } from './search.ts'
import { END, type Step, type TrailOptions, type WalkState, createWalkState, endBy, goTo, openSigns } from './state.ts'

/** Follows one list from page to page: by what each page names, otherwise by probing. */
export function createTrail(options: TrailOptions, ask: Ask) {
  const way = createWalkState(options)
  const { onward, seen } = way
  const { seeker, ...search } = createSearch(options, way, ask)
  return {
    onward: (): Onward => onward,
    /** What was seen until the end, and what probes showed. */
    seen: (): Seen => ({ ...seen, items: way.collected, total: null }),
    probed: (): Probed | null => way.probed,
    /** A page of one item; null: the walk did not ask for it. */
    askedOne: (): Promise<ReadPage | null> | null => seeker.askedOne(),
    /** Whether pages are requested by a number of items or pages: then a page that is not there is behind the last. */
    isCounting: (): boolean => isCounting(way),
    /** Records a page that equals the stored one, as does its successor. */
    kept(next: PageKey | null, entries: number): void {
      way.pages++
      way.collected += entries
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
    /** Ends a walk by number or offset where the page after the last is empty, is not there, or is the last again. */
    beyond: (): Step => endBy(way, 'empty'),
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
  return isPlace && page.signs.every(({ kind }) => kind === 'cursor')
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
  way.last = page
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
