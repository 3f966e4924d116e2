import { counted } from '../../core/text.ts'
import type { Onward } from '../../json/envelope.ts'
import type { JsonPath } from '../../json/slices.ts'
import type { Next } from './cursor.ts'
import { type PageKey, keyOfCursor, keyOfUrl, nextLink, targetOf } from './page-key.ts'
import type { KnownList, ReadPage } from './page.ts'
import {
  type Ask,
  type NextPageAttempt,
  OFFSET,
  createSeeker,
  paramsOf,
  textsOfPage,
} from './next-page.ts'

/** The next step of a walk. */
export interface Step {
  next: PageKey | null
  /** Why the list may continue although there is no next page to request; null: this is the last page. */
  cut: string | null
  /** Member of the envelope that was found to contain the cursor: the list must be read again with it. */
  cursorPath?: JsonPath
}

/** Options of a list's requests, with what earlier walks learned. */
interface TrailOptions {
  /** Root URL of the surface, without a slash at the end. */
  root: string
  path: string
  limit: number
  known: KnownList
  /** An item's own identifier, by its bytes; null when it has none. */
  idOf: (item: Buffer) => string | null
}

/** Page size to which the service most likely truncates a list (100: service API, section 8). */
const DEFAULT_SIZE = 100
/** Other usual page sizes, for lists that are known to be truncated without an indication. */
const USUAL_SIZES = new Set([10, 20, 25, 30, 50, 100, 200, 250, 500, 1000])

/** Returns whether a list with this number of items may be truncated to a page. */
export function isUsualSize(count: number): boolean {
  return USUAL_SIZES.has(count)
}

/** State of a walk. */
interface WalkState {
  onward: Onward
  /** Target of the last request. */
  asked: string
  before: { page: ReadPage; next: Next | null } | null
  collected: number
  pages: number
  /** Whether an earlier page of this walk named the next one: then a page that names none is the last. */
  named: boolean
}

const PLAIN: Onward = { param: null, byId: false, header: false, silent: false }
const END: Step = { next: null, cut: null }

type Attempts = readonly NextPageAttempt[]

/** Follows one list from page to page: by what each page names, otherwise by probing. */
export function createTrail(options: TrailOptions, ask: Ask) {
  const { path, limit, known } = options
  const onward: Onward = { ...PLAIN, ...known.onward }
  const asked = targetOf(path, limit, null)
  const way: WalkState = { onward, asked, before: null, collected: 0, pages: 0, named: false }
  const seeker = createSeeker(options, ask)
  const go = (param: string | null, value: string): Step =>
    goTo(options, way, keyOfCursor(path, limit, param ?? 'after', value))
  const seek = async (page: ReadPage, attempts: Attempts): Promise<Step | null> => {
    const found = await seeker.first(attempts, page)
    if (found === null) return null
    const { param, value, byId, at } = found.attempt
    if (at === undefined) Object.assign(onward, { param: param === 'after' ? null : param, byId })
    if (found.ends) return END
    return at === undefined ? go(param, value) : { ...go(param, value), cursorPath: [at] }
  }
  /** Continues after a page that names no next one: by what is known of the list, otherwise by probing. */
  const seekNext = async (page: ReadPage): Promise<Step> => {
    const { shape, items, total } = page
    if (shape.more !== false && items.length > 0) {
      const value = onward.param === OFFSET ? String(way.collected) : seeker.lastId(page)
      if ((onward.byId || onward.param === OFFSET) && value !== null) return go(onward.param, value)
    }
    if (mayContinue(options, way, page)) {
      if (shape.more === null && (await seeker.namesNext())) return END
      const attempts = seeker.attempts(page, way.collected)
      return (await seek(page, attempts)) ?? { next: null, cut: reasonOf(page) }
    }
    const isNew = !known.looked && !way.named && shape.more === null && total === null
    return (isNew && items.length > 0 ? await seek(page, textsOfPage(page)) : null) ?? END
  }
  return {
    onward: (): Onward => onward,
    /** Records a page that equals the stored one, as does its successor. */
    kept({ next }: Step): void {
      way.pages++
      way.named ||= next !== null
      way.before = null
      if (next !== null) goTo(options, way, next)
    },
    async after(page: ReadPage): Promise<Step> {
      const { next } = page.shape
      const link = nextLink(page.link)
      way.pages++
      way.collected += page.items.length
      way.before = { page, next }
      onward.header ||= link !== null
      way.named ||= link !== null || next !== null
      if (link !== null) return follow(options, way, link)
      if (next === null) return seekNext(page)
      return isUrl(options, next) ? follow(options, way, next.text) : go(onward.param, next.text)
    },
    /**
     * Returns the cursor after which the same page was returned again: upstream does not support the parameter. Null
     * when it is another page, or another parameter was already found.
     */
    repeatedCursor(page: ReadPage): Next | null {
      const { before } = way
      if (before === null || onward.param !== null || before.next?.isUrl !== false) return null
      return isSame(page, before.page) ? before.next : null
    },
    /** Finds the parameter that accepts a cursor; null when there is none. */
    learn: (cursor: Next): Promise<Onward | null> => learnParam(way, seeker, cursor),
  }
}

async function learnParam(
  { before, onward }: WalkState,
  seeker: ReturnType<typeof createSeeker>,
  { text, field }: Next,
): Promise<Onward | null> {
  if (before === null) return null
  const attempts = paramsOf(field).map((param) => ({ param, value: text, byId: false }))
  const found = await seeker.first(attempts, before.page)
  onward.param = found?.attempt.param ?? 'after'
  return found === null ? null : onward
}

function goTo({ path, limit }: TrailOptions, way: WalkState, key: PageKey): Step {
  way.asked = targetOf(path, limit, key)
  return { next: key, cut: null }
}

function follow(options: TrailOptions, way: WalkState, text: string): Step {
  const to = keyOfUrl(options.root, { ...options, asked: way.asked }, text)
  if ('key' in to) return goTo(options, way, to.key)
  return { next: null, cut: `it names the next page ${to.refused}` }
}

/**
 * Returns whether the next page is named by a URL: by its form, its name, or because it starts with the list's own
 * path.
 */
function isUrl({ root, path }: TrailOptions, next: Next): boolean {
  const own = new URL(root).pathname.replace(/\/$/, '') + path
  return next.isUrl || /url|link|href/i.test(next.field) || next.text.startsWith(own)
}

/** Returns whether a page that names no next one may have one. */
function mayContinue(
  { limit }: TrailOptions,
  way: WalkState,
  { items, shape, total }: ReadPage,
): boolean {
  if (shape.more === true) return true
  if (shape.more === false || way.named || items.length === 0) return false
  if (shape.pages !== null && way.pages < shape.pages) return true
  if (total !== null) return way.collected < total
  const full = [limit, DEFAULT_SIZE, shape.pageSize].includes(items.length)
  return full || (way.onward.silent && isUsualSize(items.length))
}

function isSame(one: ReadPage, other: ReadPage): boolean {
  const [first] = other.items
  return first !== undefined && one.items[0]?.equals(first) === true
}

function reasonOf({ shape, items, total }: ReadPage): string {
  const way =
    'no way to request it was found: no cursor, URL or Link header names it, and the last id does not work'
  if (shape.more === true) return `it indicates that there is more, but ${way}`
  if (total !== null)
    return `upstream counts ${counted(total, 'item')} and its last page names no next one; ${way}`
  return `its last page is full (${counted(items.length, 'item')}) and does not indicate whether there is more; ${way}`
}
