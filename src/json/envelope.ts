import { randomUUID } from 'node:crypto'
import { type JsonPath, valueAt } from './slices.ts'

/** Where a page names the next one, and how. */
export interface NextPlace {
  path: JsonPath
  /** The cursor is given within a URL. */
  url: boolean
  /** The URL stands in a member of this name, as hypermedia formats have it; null: it stands there itself. */
  link: string | null
}

/**
 * A list's envelope and where things lie in it: enough to answer any page of the list in upstream's own form. What it is
 * was learned from upstream's pages (frame-learn.ts; wire facts, lists and cursors).
 */
export interface Frame {
  /** A page of upstream's without its items. */
  envelope: unknown
  /** The place of the items; empty when the list is a bare array. */
  items: JsonPath
  /** The place of the value that leads to the next page; null when upstream's lists have none. */
  cursor: JsonPath | null
  /** As in a `NextPlace`. */
  url: boolean
  link: string | null
  /** Further places that name the next page. */
  also: readonly NextPlace[]
  /** What stands in the cursor's place on the last page. */
  ending: 'absent' | 'null' | 'empty'
  total: JsonPath | null
  /** The place where the page size is told. */
  limit: JsonPath | null
  /** The place where the number of items on the page is told. */
  shown: JsonPath | null
  /** The place where the number of pages is told. */
  pages: JsonPath | null
  /** Places that say whether there is more. */
  more: readonly JsonPath[]
  /** Places that name a page before. */
  back: readonly JsonPath[]
  /** Whether the form in which the next page is named was seen, or at least looked for. */
  learned: boolean
  /** How upstream is asked for the next page, where that is not a cursor of the envelope's given as `after`. */
  onward?: Onward
  /** Why not all of the list is known to be here; absent when it is. Then the numbers of the envelope stay upstream's. */
  partial?: string
  /** Whether that is because the list goes on in a way that is not understood. */
  cut?: boolean
  /** Items of upstream's pages that could not be taken: on which page, how many, and why the first of them. */
  skipped?: readonly Skipped[]
  /** Upstream calls its total an estimate; absent when it does not. */
  estimated?: true
}

/** Items of one of upstream's pages that could not be taken. */
export interface Skipped {
  page: number
  count: number
  why: string
}

/** How a list goes on beside, or instead of, what its envelope says. */
export interface Onward {
  /** The parameter that takes the cursor; null: `after`. */
  param: string | null
  /** The cursor is the id of the last item. */
  byId: boolean
  /** A header `Link: <…>; rel="next"` names the next page (RFC 8288). */
  header: boolean
  /** Pages are cut to the size asked for, and nothing says so. */
  silent: boolean
}

/** What a page of the mirror's own says. */
interface PageFacts {
  /** The next page as a cursor and as a URL; null on the last page. */
  next: { cursor: string; url: string } | null
  /** Null: as upstream says. */
  total: number | null
  limit: number
}

/** The envelope of one page of `shown` items, its items still missing. */
function fillFrame(frame: Frame, { next, total, limit }: PageFacts, shown: number): unknown {
  let page = frame.envelope
  if (frame.items.length === 0) return page
  const put = (path: JsonPath | null, value: unknown): void => {
    if (path !== null) page = replaceAt(page, path, value)
  }
  const set = (place: NextPlace, ending: unknown): void => {
    const { path } = place
    const inList = typeof path.at(-1) === 'number' // `[{"rel": "next", "href": …}]`: gone on the last page
    const before = valueAt(frame.envelope, path) ?? (inList ? { rel: 'next' } : null)
    put(path, next === null ? (inList ? undefined : ending) : named(place, next, before))
  }
  // The mirror walks forward only: a way back that it cannot go is not offered.
  for (const path of frame.back) put(path, null)
  const isPartial = frame.partial !== undefined
  for (const path of frame.more)
    if (!isPartial || next !== null || shown === 0) put(path, next !== null)
  for (const place of frame.also) set(place, null)
  const ending = { absent: undefined, null: null, empty: '' }[frame.ending]
  if (frame.cursor !== null) set({ ...frame, path: frame.cursor }, ending)
  if (total !== null) put(frame.total, total)
  put(frame.limit, limit)
  put(frame.shown, shown)
  if (total !== null) put(frame.pages, Math.ceil(total / limit))
  return page
}

function named(
  { url, link }: Pick<NextPlace, 'url' | 'link'>,
  next: { cursor: string; url: string },
  before: unknown,
): unknown {
  const text = url ? next.url : next.cursor
  if (link === null) return text
  return { ...(typeof before === 'object' ? before : {}), [link]: text }
}

/** A page as JSON text: its envelope around the items' own bytes. */
export function joinPage(frame: Frame, facts: PageFacts, items: readonly Buffer[]): Buffer {
  const list = [OPEN, ...items.flatMap((item, at) => (at === 0 ? [item] : [COMMA, item])), CLOSE]
  if (frame.items.length === 0) return Buffer.concat(list)
  const text = JSON.stringify(replaceAt(fillFrame(frame, facts, items.length), frame.items, MARK))
  const [before = '', after = ''] = text.split(JSON.stringify(MARK))
  return Buffer.concat([Buffer.from(before), ...list, Buffer.from(after)])
}

/** Stands where the items belong; nothing that upstream says can be the same. */
const MARK = `items ${randomUUID()}`
const OPEN = Buffer.from('[')
const COMMA = Buffer.from(',')
const CLOSE = Buffer.from(']')

/** A copy with another value at a path; undefined removes the member. */
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
