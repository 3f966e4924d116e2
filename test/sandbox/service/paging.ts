import { type ServiceRequest, ServiceError } from './request.ts'
import type { Entry } from './data/collection.ts'
import { cursorAsked } from './shapes/list.ts'
import type { ListForm } from './shapes/shape.ts'

/** How a list is sorted; entries of equal value keep the order in which they came. */
export interface Order<F extends object> {
  value: (listed: F) => string
  descending: boolean
}

/** A part of a list. The cursors are opaque texts, undefined where there is nothing to point at. */
interface Page<F extends object = object> {
  entries: readonly Entry<F>[]
  after: string | undefined
  before: string | undefined
  limit: number
  total: number
  /** Number of entries before it. */
  start: number
}

const DEFAULT_LIMIT = 100
const MAX_LIMIT = 1000
const ENDLESS = 'endless-'

/** The entries in their order; a new array. */
export function sorted<F extends object>(entries: readonly Entry<F>[], order: Order<F>): readonly Entry<F>[] {
  const keyed = entries.map((entry) => ({ entry, key: keyOf(entry, order) }))
  return keyed.sort((a, b) => compare(a.key, b.key, order.descending)).map(({ entry }) => entry)
}

/**
 * The page that `limit` and the cursor ask for (service API, sections 4 and 8). A cursor is the place of the last
 * entry seen, so a walk neither repeats nor skips what stays while entries come and go; where it is the last
 * item's id, that item has to be there still. 400 for a limit that is no number from 1 to 1000 or a cursor
 * that was never given out.
 */
export function takePage<F extends object>(
  entries: readonly Entry<F>[],
  { query, fault }: ServiceRequest,
  form: ListForm,
  order?: Order<F>,
): Page<F> {
  const wanted = limitOf(query.get('limit'))
  const limit = form.ignoresLimit === true ? form.largestPage : Math.min(wanted, form.largestPage)
  const asked = cursorAsked(form, query)
  if (fault?.kind === 'lostPage') {
    throw new ServiceError(fault.status ?? 410, 'the cursor is no longer valid: start again')
  }
  if (fault?.kind === 'endlessCursor') {
    const count = asked.startsWith(ENDLESS) ? Number(asked.slice(ENDLESS.length)) : 0
    const again = fault.items === 'repeated' ? entries.slice(0, limit) : []
    const after = `${ENDLESS}${count + 1}`
    return { entries: again, after, before: undefined, limit, total: entries.length, start: 0 }
  }
  const byId = form.next.form === 'lastId'
  const start = startOf(entries, { asked, form, limit, order })
  const taken = entries.slice(start, start + limit)
  const first = taken[0]
  const last = taken.at(-1)
  const more = start + limit < entries.length || (form.emptyLast && taken.length === limit)
  const cursor = (entry: Entry<F>): string => (byId ? entry.id : cursorOf(entry, order))
  const after = more && last !== undefined ? cursor(last) : undefined
  return {
    entries: taken,
    after: fault?.kind === 'repeatPage' && asked !== '' ? asked : after,
    before: start > 0 && first !== undefined ? cursor(first) : undefined,
    limit,
    total: entries.length,
    start,
  }
}

interface Asked<F extends object> {
  asked: string
  form: ListForm
  limit: number
  order: Order<F> | undefined
}

/** Returns the index of the first entry of the page that is asked for. 400 for a number that is none. */
function startOf<F extends object>(entries: readonly Entry<F>[], { asked, form, limit, order }: Asked<F>): number {
  const { next } = form
  if (asked === '' || next.form === 'none') return 0
  if (next.form === 'lastId') return positionOfId(entries, asked)
  if (next.form !== 'page' && next.form !== 'range') return position(entries, asked, order)
  if (!/^\d{1,9}$/.test(asked)) throw new ServiceError(400, `${next.parameter} must be a number`)
  const number = Number(asked)
  return next.form === 'range' ? number : Math.max(0, number - next.first) * limit
}

function limitOf(text: string | null): number {
  if (text === null || text === '') return DEFAULT_LIMIT
  const limit = Number(text)
  if (/^\d+$/.test(text) && limit >= 1 && limit <= MAX_LIMIT) return limit
  throw new ServiceError(400, `limit must be a whole number from 1 to ${MAX_LIMIT}`)
}

type Key = readonly [value: string, seq: number]

function keyOf<F extends object>(entry: Entry<F>, order: Order<F> | undefined): Key {
  return [order === undefined ? '' : order.value(entry.listed), entry.seq]
}

function compare(a: Key, b: Key, descending: boolean): number {
  if (a[0] === b[0]) return a[1] - b[1]
  return (a[0] < b[0] ? -1 : 1) * (descending ? -1 : 1)
}

function cursorOf<F extends object>(entry: Entry<F>, order: Order<F> | undefined): string {
  return Buffer.from(JSON.stringify(keyOf(entry, order))).toString('base64url')
}

/** Returns the index of the first entry after the cursor, by binary search. */
function position<F extends object>(entries: readonly Entry<F>[], cursor: string, order: Order<F> | undefined): number {
  const key = readCursor(cursor)
  let low = 0
  let high = entries.length
  while (low < high) {
    const middle = (low + high) >> 1
    const entry = entries[middle] as Entry<F> // in range
    if (compare(keyOf(entry, order), key, order?.descending ?? false) > 0) high = middle
    else low = middle + 1
  }
  return low
}

/** Returns the index of the entry after the one with that id. */
function positionOfId(entries: readonly Entry[], id: string): number {
  const found = entries.findIndex((entry) => entry.id === id)
  if (found < 0) throw new ServiceError(400, `the list has no item ${id} to continue from`)
  return found + 1
}

function readCursor(cursor: string): Key {
  try {
    const key: unknown = JSON.parse(Buffer.from(cursor, 'base64url').toString())
    if (Array.isArray(key) && typeof key[0] === 'string' && typeof key[1] === 'number') {
      return [key[0], key[1]]
    }
  } catch {
    // falls through to the refusal
  }
  throw new ServiceError(400, 'after is not a cursor that this list gave out')
}
