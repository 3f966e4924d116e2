import { gzipSync } from 'node:zlib'

import { type Frame, joinPage } from '../json/frame.ts'
import type { ListPath, Resource } from '../resources.ts'
import { createAnswer, sendAnswer } from './answer.ts'
import { type CatalogParts, tagOf } from './catalog-answers.ts'
import { createPlaces } from './catalog-places.ts'
import { createTallies } from './catalog-tallies.ts'
import { requestedPath } from './catalog-missing.ts'
import { DEFAULT_LIMIT, readLimit, readOrder, readWhere, unknownField } from './catalog-wishes.ts'
import { chooseCoding } from './negotiate.ts'
import { onlyValue } from './query.ts'
import type { RouteCall } from './routes.ts'

/** Lists, page by page, in upstream's own envelope; filtered and ordered by SQL. */
export function createLists({ tools, missing }: CatalogParts) {
  const { moment, heads } = tools
  const tallies = createTallies(moment)

  /** Nothing to wait for: SQLite answers at once. */
  const send = (call: RouteCall, resource: Resource, declared: ListPath): undefined => {
    answer(call, resource, declared)
  }
  const answer = (call: RouteCall, resource: Resource, declared: ListPath): void => {
    const origin = missing.origin(resource)
    if ('status' in origin) return call.refuse(origin)
    const { query, wishes } = call
    const path = requestedPath(declared.path, call.params)
    const asked = readLimit(query)
    const where = readWhere(query, declared.facets)
    const order = readOrder(query, declared.facets)
    const list = moment.reads.readCatalogList(path)
    if (list === null) return call.refuse(missing.explain(resource, call.params, path))
    if (!tallies.isKnown(origin.version, list, order)) throw unknownField(order)
    const frame = JSON.parse(list.frame) as Frame
    // Without a place for a cursor nobody could ask for the rest: all of it, as upstream gave it, unless less is asked for.
    const limit = asked ?? (frame.cursor === null ? Math.max(1, list.entries) : DEFAULT_LIMIT)
    const places = createPlaces(moment.reads, list, order)
    const from = places.read(onlyValue(query, 'after'))
    const rows = moment.reads.listCatalogEntries({
      list: list.id,
      where,
      order,
      after: from.place,
      limit: limit + 1,
    })
    const shown = rows.slice(0, limit)
    const next = rows.length > limit ? nextOf(call, path, places.write(shown, from)) : null
    const total = tallies.countOf(origin.version, list, where)
    const items = shown.map(({ body }) => body)
    const page = joinPage(frame, { next, total, limit }, items)
    const coding = chooseCoding(wishes.acceptEncoding)
    const bytes = coding === 'gzip' ? gzipSync(page, { level: 3 }) : page
    sendAnswer(call, createAnswer(coding, bytes, tagOf(page), list.changed), origin, heads)
  }
  return { send }
}

/** The way to the next page: a cursor, and, where upstream gives URLs, one of the mirror's own. */
function nextOf(call: RouteCall, path: string, cursor: string): { cursor: string; url: string } {
  const query = new URLSearchParams(call.query)
  query.set('after', cursor)
  return { cursor, url: `${call.baseUrl()}${path}?${query.toString()}` }
}
