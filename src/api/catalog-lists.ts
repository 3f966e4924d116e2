import { gzipSync } from 'node:zlib'

import { type Frame, joinPage } from '../json/frame.ts'
import type { ListPath, Resource } from '../resources.ts'
import { createAnswer, sendAnswer } from './answer.ts'
import { type CatalogParts, tagOf } from './catalog-answers.ts'
import { createPlaces } from './catalog-places.ts'
import { createTallies } from './catalog-tallies.ts'
import { requestedPath } from './catalog-missing.ts'
import {
  DEFAULT_LIMIT,
  readLimit,
  readListQuery,
  readOrder,
  readWhere,
  unknownParameters,
} from './catalog-wishes.ts'
import { chooseCoding } from './negotiate.ts'
import { onlyValue } from './query.ts'
import type { RouteCall } from './routes.ts'

/** Lists, page by page, in upstream's own envelope; filtered and ordered by SQL. */
export function createLists({ tools, missing, strictParameters }: CatalogParts) {
  const { moment, heads } = tools
  const tallies = createTallies(moment.reads)

  /** Nothing to wait for: SQLite answers at once. */
  const send = (call: RouteCall, resource: Resource, declared: ListPath): undefined => {
    answerList(call, resource, declared)
  }
  const answerList = (call: RouteCall, resource: Resource, declared: ListPath): void => {
    const origin = missing.origin(resource)
    if ('status' in origin) return call.refuse(origin)
    const { facets } = declared
    const { known: query, unknown } = readListQuery(call.query, facets)
    if (unknown.length > 0 && strictParameters) throw unknownParameters(unknown, facets)
    const path = requestedPath(declared.path, call.params)
    const asked = readLimit(query)
    const where = readWhere(query, facets)
    const list = moment.reads.readCatalogList(path)
    if (list === null) return call.refuse(missing.explain(resource, call.params, path))
    const order = readOrder(query, facets, () => tallies.fieldsOf(origin.version, list))
    tallies.checkFilters(list, facets, where)
    tallies.checkOrder(list, facets, order.facet)
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
    const next = rows.length > limit ? nextOf(call, query, path, places.write(shown, from)) : null
    const total = tallies.countOf(origin.version, list, where)
    const items = shown.map(({ body }) => body)
    const page = joinPage(frame, { next, total, limit }, items)
    const coding = chooseCoding(call.wishes.acceptEncoding)
    const bytes = coding === 'gzip' ? gzipSync(page, { level: 3 }) : page
    const answer = createAnswer(coding, bytes, tagOf(page), list.changed)
    sendAnswer(call, answer, origin, heads, ignoredField(unknown))
  }
  return { send }
}

/** Tells which query parameters had no part in the answer; nothing when all had. */
function ignoredField(unknown: readonly string[]): string[] {
  if (unknown.length === 0) return []
  const names = unknown
    .slice(0, 20)
    .map((name) => encodeURIComponent(name.toWellFormed().slice(0, 80)))
  return ['X-Mirror-Ignored-Parameters', names.join(', ')]
}

/** The way to the next page: a cursor, and, where upstream gives URLs, one of the mirror's own. */
function nextOf(
  call: RouteCall,
  query: URLSearchParams,
  path: string,
  cursor: string,
): { cursor: string; url: string } {
  const next = new URLSearchParams(query)
  next.set('after', cursor)
  return { cursor, url: `${call.baseUrl()}${path}?${next.toString()}` }
}
