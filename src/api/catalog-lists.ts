import { gzipSync } from 'node:zlib'

import { type Frame, joinPage } from '../json/frame.ts'
import type { ListPath, Resource } from '../resources.ts'
import type { CatalogList } from '../store/catalog.ts'
import type { OrderedEntry, Place, Where } from '../store/catalog-query.ts'
import { createAnswer, sendAnswer } from './answer.ts'
import { type CatalogParts, tagOf } from './catalog-answers.ts'
import { readCursor, writeCursor } from './catalog-cursor.ts'
import { requestedPath } from './catalog-missing.ts'
import { type Ordering, readLimit, readOrder, readWhere } from './catalog-wishes.ts'
import { chooseCoding } from './negotiate.ts'
import { onlyValue } from './query.ts'
import type { RouteCall } from './routes.ts'

/** Counts kept at most, of different filters. */
const COUNTS = 1000

/** Lists, page by page, in upstream's own envelope; filtered and ordered by SQL. */
export function createLists({ tools, missing }: CatalogParts) {
  const { moment, heads } = tools
  const counts = new Map<string, number>()
  let countedFor = ''

  const countOf = (version: string, list: CatalogList, where: readonly Where[]): number => {
    if (where.length === 0) return list.entries
    if (version !== countedFor || counts.size >= COUNTS) counts.clear()
    countedFor = version
    const key = `${list.id} ${JSON.stringify(where)}`
    const known = counts.get(key)
    if (known !== undefined) return known
    const count = moment.reads.countCatalogEntries(list.id, where)
    counts.set(key, count)
    return count
  }

  /** Where the page begins: behind the entry that the cursor names, wherever that is by now. */
  const placeOf = (list: CatalogList, after: string | null, order: Ordering): Place | null => {
    if (after === null) return null
    const cursor = readCursor(after, order.text)
    const entry = moment.reads.readCatalogEntry(list.id, cursor.id)
    return { value: cursor.value, ordinal: entry?.ordinal ?? cursor.ordinal }
  }

  /** Nothing to wait for: SQLite answers at once. */
  const send = (call: RouteCall, resource: Resource, declared: ListPath): undefined => {
    answer(call, resource, declared)
  }
  const answer = (call: RouteCall, resource: Resource, declared: ListPath): void => {
    const origin = missing.origin(resource)
    if ('status' in origin) return call.refuse(origin)
    const { query, wishes } = call
    const path = requestedPath(declared.path, call.params)
    const limit = readLimit(query)
    const where = readWhere(query, declared.facets)
    const order = readOrder(query, declared.facets)
    const list = moment.reads.readCatalogList(path)
    if (list === null) return call.refuse(missing.explain(resource, call.params, path))
    const after = placeOf(list, onlyValue(query, 'after'), order)
    const asked = { list: list.id, where, order, after, limit: limit + 1 }
    const rows = moment.reads.listCatalogEntries(asked)
    const frame = JSON.parse(list.frame) as Frame
    const shown = rows.slice(0, limit)
    const last = rows.length > limit ? shown.at(-1) : undefined
    const next = last === undefined ? null : nextOf(call, frame, last, order, path)
    const total = countOf(origin.version, list, where)
    const page = joinPage(
      frame,
      { next, total, limit },
      shown.map(({ body }) => body),
    )
    const coding = chooseCoding(wishes.acceptEncoding)
    const bytes = coding === 'gzip' ? gzipSync(page, { level: 3 }) : page
    sendAnswer(call, createAnswer(coding, bytes, tagOf(page), list.changed), origin, heads)
  }
  return { send }
}

/** The way to the next page: a cursor, or, where upstream gives URLs, one of the mirror's own. */
function nextOf(
  call: RouteCall,
  frame: Frame,
  { id, ordinal, value }: OrderedEntry,
  order: Ordering,
  path: string,
): string {
  const cursor = writeCursor({ id, ordinal, value }, order.text)
  if (!frame.url) return cursor
  const query = new URLSearchParams(call.query)
  query.set('after', cursor)
  return `${call.baseUrl()}${path}?${query.toString()}`
}
