import { randomUUID } from 'node:crypto'
import { type LinkStyle, type PageUrls, styledLink, withLocalLinks } from './forms/page-links.ts'
import { type JsonPath, valueAt } from './slices.ts'

/** Position at which a page names the next one, and its form. */
export interface NextPlace {
  path: JsonPath
  /** Whether the cursor is within a URL. */
  url: boolean
  /** Member that contains the URL, as in hypermedia formats; null: the position contains it directly. */
  link: string | null
  /** How the URL is written; absent: as a whole. */
  style?: LinkStyle
}

/**
 * A list's envelope and the positions of its parts: enough to build any page of the list in upstream's own form.
 * Learned from upstream's pages (envelope-learn.ts; wire facts, lists and cursors).
 */
export interface Frame {
  /** A page of upstream without its items. */
  envelope: unknown
  /** Position of the items; empty when the list is a bare array. */
  items: JsonPath
  /** Position of the value that leads to the next page; null when upstream's lists have none. */
  cursor: JsonPath | null
  /** See `NextPlace`. */
  url: boolean
  link: string | null
  style?: LinkStyle
  /** Further positions that name the next page. */
  also: readonly NextPlace[]
  /** Value in the cursor's position on the last page. */
  ending: 'absent' | 'null' | 'empty'
  total: JsonPath | null
  /** Position of the page size. */
  limit: JsonPath | null
  /** Position of the number of items on the page. */
  shown: JsonPath | null
  /** Position of the number of pages. */
  pages: JsonPath | null
  /** Position of the page's own number; absent: there is none. */
  page?: JsonPath
  /** Positions of flags that indicate further pages. */
  more: readonly JsonPath[]
  /** Positions of flags that indicate the last page; absent: there are none. */
  ends?: readonly JsonPath[]
  /** Positions that name a previous page. */
  back: readonly JsonPath[]
  /** Whether the form of the next page's name was seen, or was probed for. */
  learned: boolean
  /** How the next page is requested, where that is not a cursor of the envelope sent as `after`. */
  onward?: Onward
  /** The media type that upstream gives its pages; absent: `application/json`. */
  type?: string
  /** Why the list is not known to be complete; absent when it is. The numbers in the envelope then stay upstream's. */
  partial?: string
  /** Why nothing proves the end of the list, although nothing speaks of more; absent when it is proved. */
  unproved?: string
  /** Whether the reason is that the list continues in an unknown way. */
  cut?: boolean
  /** Skipped items of upstream's pages: the page, their number and the first reason. */
  skipped?: readonly Skipped[]
  /** Whether upstream calls its total an estimate; absent when it does not. */
  estimated?: true
}

/** Skipped items of one of upstream's pages. */
export interface Skipped {
  page: number
  count: number
  why: string
}

/** How the next page of a list is requested, in addition to or instead of its envelope. */
export interface Onward {
  /** Query parameter of the cursor; null: `after`. */
  param: string | null
  /** Whether the cursor is the id of the last item. */
  byId: boolean
  /** Whether a header `Link: <…>; rel="next"` names the next page (RFC 8288). */
  header: boolean
  /** Whether pages are truncated to the requested size without an indication. */
  silent: boolean
  /** Number of the list's first page, where `param` is the number of a page; absent: it is not. */
  firstPage?: 0 | 1
  /** What pages name as the next one leads back to the first: another way is used. */
  own?: true
  /** Name of another header that names the next page, in lower case (`x-next-cursor`); absent: there is none. */
  headerName?: string
}

/** Values of a page that the mirror serves. */
interface PageFacts {
  /** The next page as a cursor and as a URL; null on the last page. */
  next: { cursor: string; url: string } | null
  /** Number of items in the list; null: keep upstream's value. */
  total: number | null
  limit: number
  urls: PageUrls
  /** Number of items before the page; null or absent: not known. */
  start?: number | null
}

/** Builds the envelope of a page of `shown` items, without the items. */
function fillFrame(frame: Frame, facts: PageFacts, shown: number): unknown {
  const { next, total, limit, start = null } = facts
  let page = frame.envelope
  if (frame.items.length === 0) return page
  const put = (path: JsonPath | null, value: unknown): void => {
    if (path !== null) page = replaceAt(page, path, value)
  }
  const set = (place: NextPlace, ending: unknown): void => {
    const { path } = place
    const inList = typeof path.at(-1) === 'number'
    const last = inList ? undefined : ending // what is in a list is removed
    const before = valueAt(frame.envelope, path) ?? (inList ? { rel: 'next' } : null)
    put(path, next === null ? last : nextValue(place, next, before))
  }
  // The mirror serves forward paging only: links to previous pages are removed.
  for (const path of frame.back) put(path, null)
  const isPartial = frame.partial !== undefined
  if (!isPartial || next !== null || shown === 0) {
    for (const path of frame.more) put(path, next !== null)
    for (const path of frame.ends ?? []) put(path, next === null)
  }
  for (const place of frame.also) set(place, null)
  const ending = { absent: undefined, null: null, empty: '' }[frame.ending]
  if (frame.cursor !== null) set({ ...frame, path: frame.cursor }, ending)
  const isText = typeof valueAt(frame.envelope, frame.total ?? []) === 'string'
  if (total !== null) put(frame.total, isText ? String(total) : total)
  if (!isPartial || total !== null) {
    put(frame.limit, limit)
    put(frame.shown, shown)
  }
  if (start !== null && frame.page !== undefined)
    put(frame.page, Number(valueAt(frame.envelope, frame.page)) + Math.floor(start / limit))
  if (total !== null) put(frame.pages, Math.ceil(total / limit))
  return withLocalLinks(page, frame.items, facts.urls)
}

function nextValue(
  { url, link, style = 'absolute' }: Pick<NextPlace, 'url' | 'link' | 'style'>,
  next: { cursor: string; url: string },
  before: unknown,
): unknown {
  const text = url ? styledLink(next.url, style) : next.cursor
  if (link === null) return text
  return { ...(typeof before === 'object' ? before : {}), [link]: text }
}

/** Returns a page as JSON text: its envelope around the items' own bytes. */
export function joinPage(frame: Frame, facts: PageFacts, items: readonly Buffer[]): Buffer {
  const list = [OPEN, ...items.flatMap((item, at) => (at === 0 ? [item] : [COMMA, item])), CLOSE]
  if (frame.items.length === 0) return Buffer.concat(list)
  const text = JSON.stringify(replaceAt(fillFrame(frame, facts, items.length), frame.items, MARK))
  const [before = '', after = ''] = text.split(JSON.stringify(MARK))
  return Buffer.concat([Buffer.from(before), ...list, Buffer.from(after)])
}

/** Placeholder of the items; random, so that no value of upstream can equal it. */
const MARK = `items ${randomUUID()}`
const OPEN = Buffer.from('[')
const COMMA = Buffer.from(',')
const CLOSE = Buffer.from(']')

/** Returns a copy with another value at a path; undefined removes the member. */
export function replaceAt(value: unknown, path: JsonPath, replacement: unknown): unknown {
  const [step, ...rest] = path
  if (step === undefined) return replacement
  const object = typeof value === 'object' && value !== null ? value : {}
  const inner = replaceAt(valueAt(object, [step]), rest, replacement)
  if (Array.isArray(object)) return replaceIn(object, Number(step), inner)
  if (inner !== undefined) return { ...object, [step]: inner }
  return Object.fromEntries(Object.entries(object).filter(([name]) => name !== step))
}

function replaceIn(list: readonly unknown[], step: number, inner: unknown): unknown[] {
  const own = inner === undefined ? [] : [inner]
  return [...list.slice(0, step), ...own, ...list.slice(step + 1)]
}
