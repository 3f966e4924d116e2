import { gzipSync } from 'node:zlib'

import { type Frame, joinPage } from '../json/frame.ts'
import type { ListPath, Resource } from '../resources.ts'
import type { OrderedEntry } from '../store/catalog-query.ts'
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
import type { ReadCall } from './reading/call.ts'

/** Lists, page by page, in upstream's own envelope; filtered and ordered by SQL. */
export function createLists({ tools, missing, strictParameters }: CatalogParts) {
  const { moment, heads } = tools
  const tallies = createTallies(moment.reads)

  const send = (call: ReadCall, resource: Resource, declared: ListPath): void => {
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
    const total = tallies.countOf(origin.version, list, where)
    const ordering = order.field === null || where.length > 0 ? null : tools.orderings
    const rows =
      total === 0
        ? []
        : moment.reads.listCatalogEntries({
            ...{ list: list.id, where, order, after: from.place, limit: limit + 1, matches: total },
            // Where nobody could ask for the rest, the page has to have it all.
            ...(frame.cursor !== null && { maxBytes: MAX_PAGE_BYTES }),
            ...(ordering !== null && {
              ordering: ordering.orderingOf(origin.version, list.id, order),
            }),
          })
    const shown = rows.slice(0, limit).slice(0, fitting(rows))
    const next =
      rows.length > shown.length ? nextOf(call, query, path, places.write(shown, from)) : null
    const items = shown.map(({ body }) => body)
    const page = joinPage(frame, { next, total, limit }, items)
    const coding = chooseCoding(call.wishes.acceptEncoding)
    const bytes = coding === 'gzip' ? gzipSync(page, { level: 3 }) : page
    const answer = createAnswer(coding, bytes, tagOf(page), list.changed)
    sendAnswer(call, answer, origin, heads, ignoredField(unknown))
  }
  return { send }
}

/** A page is in memory as a whole: with larger items it has fewer of them. */
const MAX_PAGE_BYTES = 32 * 2 ** 20

/** How many of the rows make a page that is not too large; the first always. */
function fitting(rows: readonly OrderedEntry[]): number {
  let bytes = 0
  const end = rows.findIndex(({ body }) => (bytes += body.length) > MAX_PAGE_BYTES)
  return end < 0 ? rows.length : Math.max(1, end)
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
  call: ReadCall,
  query: URLSearchParams,
  path: string,
  cursor: string,
): { cursor: string; url: string } {
  const next = new URLSearchParams(query)
  next.set('after', cursor)
  return { cursor, url: `${call.baseUrl()}${path}?${next.toString()}` }
}
