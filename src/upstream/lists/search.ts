import { MirrorError } from '../../base/errors.ts'
import { counted } from '../../base/text.ts'
import { isOffset } from '../../base/json/list-names.ts'
import { statusOf } from '../http/errors.ts'
import { isUsualSize } from './evidence.ts'
import { type Ask, type FoundPage, type NextPageAttempt, createSeeker, saysNext, textsOfPage } from './next-page.ts'
import { keyOfCursor } from './page-key.ts'
import type { Probed, ReadPage } from './page.ts'
import {
  END,
  type Step,
  type TrailOptions,
  type WalkState,
  endBy,
  endProbed,
  goTo,
  isAllCounted,
  openSigns,
} from './state.ts'

/** What a search for the next page works with. */
interface Searching {
  options: TrailOptions
  way: WalkState
  seeker: ReturnType<typeof createSeeker>
}

/** Creates the search for the next page of a list whose pages do not name it. */
export function createSearch(options: TrailOptions, way: WalkState, ask: Ask) {
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
  const isStated = shape.more === false && !countsMore(way, page)
  const end = endSaid(isStated, way.named)
  seen.more = openSigns(way, page, end !== null)
  const isCounted = seen.more.length === 0 && isAllCounted(way, page)
  const mayCount = !isStated && items.length > 0 && !isCounted
  const step = mayCount ? count(search, page) : null
  if (step !== null) return step
  if (end !== null) return endBy(way, end)
  if (isCounted) return endBy(way, 'counted')
  const isBeyond = way.pages > 1 && openSigns(way, page, true).length === 0
  if (items.length === 0 && shape.more !== true && (isBeyond || seen.more.length === 0))
    return endBy(way, isBeyond ? 'empty' : null)
  const isFull = page.total === null && shape.pageSize === items.length
  if (isFull) seen.more.push(`its last page is full (${counted(items.length, 'item')})`)
  if (seen.more.length === 0) return probeIfAnswered(() => probe(search, page))
  if (shape.more !== true && items.length > 1 && (await seeker.namesNext())) return endBy(way, 'unnamed')
  return (await seek(search, page, seeker.attempts(page, way.collected), true)) ?? END
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
  if (isOffset(onward.param)) return go(search, onward.param, String(way.collected))
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
  const { seeker } = search
  const found = take(search, await seeker.first(attempts, page))
  return found ?? (isNumbered ? take(search, await seeker.numbered(page)) : null)
}

/** Takes a way that was found; null where none was. */
function take(search: Searching, found: FoundPage | null): Step | null {
  if (found === null) return null
  const { way } = search
  if (found.ends && way.pages > 1) return endBy(way, 'empty') // the way that led here stays known
  const { param, value, byId, at, firstPage } = found.attempt
  const own = param === 'after' ? null : param
  Object.assign(way.onward, { param: own, byId, ...(firstPage !== undefined && { firstPage }) })
  if (found.ends) return endBy(way, 'empty')
  const step = go(search, param, value)
  return at === undefined ? step : { ...step, cursorPath: at }
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
  if (one !== null && saysNext(one)) return endBy(way, 'unnamed')
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

/**
 * Returns whether what an earlier run probed holds for a list of this many items. One that is shorter, or has a usual
 * size, may have been cut since; and before, other pages of a list that keeps to "limit" were not asked for.
 */
function isStillTrue({ items, otherPages }: Probed, collected: number, isUsual: boolean): boolean {
  if (otherPages === null) return false
  return items === collected || (!isUsual && collected > items)
}

/** Leaves it open what probes show which the service fails to answer: the next run sends them again. */
async function probeIfAnswered(probe: () => Promise<Step>): Promise<Step> {
  try {
    return await probe()
  } catch (error) {
    if (error instanceof MirrorError && (statusOf(error) ?? 0) >= 500) return END
    throw error
  }
}
