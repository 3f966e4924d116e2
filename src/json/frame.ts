import { randomUUID } from 'node:crypto'
import { type JsonPath, valueAt } from './locate.ts'

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
}

/** What a page of the mirror's own says. */
export interface PageFacts {
  /** The next page as a cursor and as a URL; null on the last page. */
  next: { cursor: string; url: string } | null
  total: number
  limit: number
}

/** The envelope of one page of `shown` items, its items still missing. */
export function fillFrame(frame: Frame, { next, total, limit }: PageFacts, shown: number): unknown {
  let page = frame.envelope
  if (frame.items.length === 0) return page
  const put = (path: JsonPath | null, value: unknown): void => {
    if (path !== null) page = replaceAt(page, path, value)
  }
  // The mirror walks forward only: a way back that it cannot go is not offered.
  for (const path of frame.back) put(path, null)
  for (const path of frame.more) put(path, next !== null)
  for (const place of frame.also) put(place.path, next === null ? null : named(place, next))
  const ending = { absent: undefined, null: null, empty: '' }[frame.ending]
  put(frame.cursor, next === null ? ending : named(frame, next))
  put(frame.total, total)
  put(frame.limit, limit)
  put(frame.shown, shown)
  put(frame.pages, Math.ceil(total / limit))
  return page
}

function named(
  { url, link }: Pick<NextPlace, 'url' | 'link'>,
  next: { cursor: string; url: string },
): unknown {
  const text = url ? next.url : next.cursor
  return link === null ? text : { [link]: text }
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
  if (inner !== undefined) return { ...object, [step]: inner }
  return Object.fromEntries(Object.entries(object).filter(([name]) => name !== step))
}
