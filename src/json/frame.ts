import { type JsonPath, valueAt } from './locate.ts'

/**
 * A list's envelope without its items, and where things lie in it: enough to answer any page of the list in upstream's
 * own form. What it is was learned from upstream's pages (wire facts, lists and cursors).
 */
export interface Frame {
  envelope: unknown
  /** The place of the items; empty when the list is a bare array. */
  items: JsonPath
  /** The place of the value that leads to the next page; null when upstream's lists have none. */
  cursor: JsonPath | null
  total: JsonPath | null
  /** The place where the page size is told. */
  limit: JsonPath | null
  /** What stands in the cursor's place on the last page. */
  ending: 'absent' | 'null' | 'empty'
  /** The cursor is given within a URL of the next page. */
  url: boolean
}

/** What a page can tell of its list's frame; the rest comes with the last page. */
export function frameOf(
  page: unknown,
  places: { itemsPath: JsonPath; cursorPath: JsonPath | null; totalPath: JsonPath | null },
  limit: number,
): Frame {
  const { itemsPath, cursorPath, totalPath } = places
  const cursor = cursorPath ?? guessCursor(page)
  const text = cursor === null ? undefined : valueAt(page, cursor)
  return {
    envelope: itemsPath.length === 0 ? [] : replaceAt(page, itemsPath, []),
    items: itemsPath,
    cursor,
    total: totalPath,
    limit: findNumber(page, itemsPath, limit, []),
    ending: endingOf(page, cursor),
    url: typeof text === 'string' && /^(https?:\/\/|\/|\?)/.test(text),
  }
}

/** What stands where the next cursor would, on a page that has none. */
export function endingOf(page: unknown, cursor: JsonPath | null): Frame['ending'] {
  const value = cursor === null ? undefined : valueAt(page, cursor)
  return value === null ? 'null' : value === '' ? 'empty' : 'absent'
}

/** A list that never had a second page shows no cursor; an object of that name is where it would be. */
function guessCursor(page: unknown): JsonPath | null {
  const cursor = valueAt(page, ['cursor'])
  return typeof cursor === 'object' && cursor !== null ? ['cursor', 'after'] : null
}

/** What a page of the mirror's own says. */
export interface PageFacts {
  /** Null on the last page. */
  next: string | null
  total: number
  limit: number
}

/** The envelope of one page, its items still missing. */
export function fillFrame(frame: Frame, { next, total, limit }: PageFacts): unknown {
  let page = frame.envelope
  if (frame.items.length === 0) return page
  if (frame.cursor !== null) {
    const ending = frame.ending === 'absent' ? undefined : frame.ending === 'null' ? null : ''
    page = replaceAt(page, frame.cursor, next ?? ending)
    // The mirror walks forward only: a way back that it cannot go is not offered.
    const parent = frame.cursor.slice(0, -1)
    for (const name of ['before', 'previous', 'prev', 'previous_cursor', 'prev_cursor']) {
      if (valueAt(page, [...parent, name]) !== undefined)
        page = replaceAt(page, [...parent, name], null)
    }
  }
  if (frame.total !== null) page = replaceAt(page, frame.total, total)
  if (frame.limit !== null) page = replaceAt(page, frame.limit, limit)
  return page
}

/** A page as JSON text: its envelope around the items' own bytes. */
export function joinPage(frame: Frame, facts: PageFacts, items: readonly Buffer[]): Buffer {
  const list = [OPEN, ...items.flatMap((item, at) => (at === 0 ? [item] : [COMMA, item])), CLOSE]
  if (frame.items.length === 0) return Buffer.concat(list)
  const mark = '\u0000items\u0000'
  const text = JSON.stringify(replaceAt(fillFrame(frame, facts), frame.items, mark))
  const [before = '', after = ''] = text.split(JSON.stringify(mark))
  return Buffer.concat([Buffer.from(before), ...list, Buffer.from(after)])
}

const OPEN = Buffer.from('[')
const COMMA = Buffer.from(',')
const CLOSE = Buffer.from(']')

/** A copy with another value at a path; undefined removes the member. */
function replaceAt(value: unknown, path: JsonPath, replacement: unknown): unknown {
  const [step, ...rest] = path
  if (step === undefined) return replacement
  if (Array.isArray(value)) {
    return value.map((item: unknown, at) =>
      at === step ? replaceAt(item, rest, replacement) : item,
    )
  }
  const object = typeof value === 'object' && value !== null ? value : {}
  const inner = replaceAt((object as Record<string, unknown>)[step], rest, replacement)
  const copy: Record<string, unknown> = { ...object }
  return inner === undefined ? without(copy, step) : { ...copy, [step]: inner }
}

function without(object: Record<string, unknown>, name: string | number): Record<string, unknown> {
  return Object.fromEntries(Object.entries(object).filter(([key]) => key !== name))
}

/** The place of a number in the envelope, items aside. */
function findNumber(
  value: unknown,
  items: JsonPath,
  wanted: number,
  at: readonly string[],
): JsonPath | null {
  if (value === wanted) return at
  if (typeof value !== 'object' || value === null || Array.isArray(value) || at.length > 3)
    return null
  for (const [name, inner] of Object.entries(value)) {
    const path = [...at, name]
    if (path.join('\0') === items.join('\0') || /total|count/i.test(name)) continue
    const found = findNumber(inner, items, wanted, path)
    if (found !== null) return found
  }
  return null
}
