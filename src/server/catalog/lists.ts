import { type Frame, joinPage } from '../../base/json/envelope.ts'
import { LAST_ID_PARAMS, isOffset, positionIn } from '../../base/json/list-names.ts'
import type { CatalogResource, Facet, ListPath } from '../../base/domain/resources.ts'
import { incompleteFields, requireWhole } from '../../store/catalog/completeness.ts'
import type { EntryQuery, ListPosition, OrderedEntry, Where } from '../../store/catalog/list-query.ts'
import { contentTag, respond, typed } from '../http/response.ts'
import type { CatalogParts } from './answers.ts'
import { createListCursors } from './list-cursor.ts'
import { requestedPath } from './not-found.ts'
import {
  DEFAULT_LIMIT,
  MAX_LIMIT,
  readListQuery,
  readOrder,
  readWhere,
  unknownField,
  unknownParameters,
} from './list-query.ts'
import { originOfOne } from '../http/origin.ts'
import { ignoredField, onlyValue, readLimit } from '../http/request-target.ts'
import type { ReadCall } from '../reading/request.ts'
import type { CatalogList } from '../../store/catalog/lists.ts'
import type { Reads } from '../../store/reads.ts'
import { MirrorError } from '../../base/errors.ts'

/** Lists, page by page, in upstream's own envelope; filtered and ordered by SQL. */
export function createLists({ tools, missing, strictParameters }: CatalogParts) {
  const { served, heads } = tools
  const counts = createCounts(served.reads)

  const send = (call: ReadCall, resource: CatalogResource, declared: ListPath): void => {
    const origin = missing.origin(resource)
    if ('status' in origin) return call.refuse(origin)
    const { facets } = declared
    const path = requestedPath(declared.path, call.params)
    const refused = missing.refused(path, origin)
    if (refused !== null) return call.refuse(refused)
    const list = served.reads.catalog.readList(path)
    const frame = list === null ? null : (JSON.parse(list.frame) as Frame)
    const pagers = frame === null ? [] : pagersOf(frame)
    const { known: query, unknown } = readListQuery(call.query, facets, pagers)
    if (unknown.length > 0 && strictParameters) throw unknownParameters(unknown, facets)
    const asked = readLimit(query, MAX_LIMIT)
    const where = readWhere(query, facets)
    if (list === null || frame === null) return call.refuse(missing.explain(resource, call.params, path))
    const order = readOrder(query, facets, () => counts.fieldsOf(origin.version, list))
    const incomplete = served.reads.catalog.whyIncomplete(list.path)
    if (where.length > 0 || order.text !== '') requireWhole(incomplete, takesWhole(path))
    counts.checkFilters(list, facets, where)
    counts.checkOrder(list, facets, order.facet)
    const limit = asked ?? usualLimit(frame, list)
    const places = createListCursors(served.reads, { list, order, where, byId: frame.cursor === null })
    const skipped = readSkipped(query, frame, limit)
    const count = counts.countOf(origin.version, list, where)
    const ordering = order.field === null || where.length > 0 ? null : tools.orderings
    const asking: EntryQuery = {
      list: list.id,
      where,
      order,
      after: null,
      limit: limit + 1,
      matches: count,
      ...(ordering !== null && { ordering: ordering.orderingOf(origin.version, list.id, order) }),
    }
    const from =
      skipped === null
        ? places.read(readAfter(query, pagers))
        : { place: placeBehind(served.reads, asking, skipped), anchors: [] }
    const rows = readRows(served.reads, { ...asking, after: from.place }, skipped ?? 0)
    const shown = rows.slice(0, limit).slice(0, fitting(rows))
    const next = rows.length > shown.length ? nextOf(call, { query, path, pagers }, places.write(shown, from)) : null
    const total = isTotalKept(frame) && where.length === 0 ? null : count
    const start = skipped ?? (from.place === null ? 0 : null)
    const items = shown.map(({ body }) => body)
    const urls = { ...urlsOf(call, query, path), next: next?.url ?? null }
    const body = joinPage(frame, { next, total, limit, start, urls }, items)
    const links = next === null ? [] : nextFields(frame, next)
    const always = declared === resource.list // the lists of items are walked when their item changes
    const own = originOfOne(origin, list, { always, reads: served.reads })
    const more = [...ignoredField(unknown), ...links, ...incompleteFields(incomplete)]
    const content = { body, tag: tagOf(body, links), changed: list.changed, origin: own, more }
    respond(call, content, typed(heads, frame.type))
  }
  return { send }
}

/** Totals of an incomplete list stay upstream's. */
function isTotalKept({ partial, estimated }: Frame): boolean {
  return partial !== undefined || estimated === true
}

/** The header fields that name the next page are a part of the answer. */
function tagOf(page: Buffer, links: readonly string[]): string {
  return contentTag(links.length === 0 ? page : Buffer.concat([page, Buffer.from(links.join())]))
}

function takesWhole(path: string): string {
  return `${path} is stored, but a filter or an order takes the whole list`
}

/** A list that upstream gives whole has one page here too, unless less is asked for. */
function usualLimit(frame: Frame, { entries }: CatalogList): number {
  const isPaged = frame.cursor !== null || frame.onward !== undefined
  return isPaged ? DEFAULT_LIMIT : Math.max(1, entries)
}

/** A page is in memory as a whole: with larger items it has fewer of them. */
const MAX_PAGE_BYTES = 32 * 2 ** 20

/** How many of the rows make a page that is not too large; the first always. */
function fitting(rows: readonly OrderedEntry[]): number {
  let bytes = 0
  const end = rows.findIndex(({ body }) => (bytes += body.length) > MAX_PAGE_BYTES)
  return end < 0 ? rows.length : Math.max(1, end)
}

/**
 * Returns the headers that name the next page, as a flat list: Link as upstream does, or because its envelope has no place for
 * a cursor; and the header that upstream has for it.
 */
function nextFields({ cursor, onward }: Frame, next: { cursor: string; url: string }): string[] {
  const isLinked = cursor === null || onward?.header === true
  const link = isLinked ? ['Link', `<${next.url}>; rel="next"`] : []
  const name = onward?.headerName
  if (name === undefined) return link
  return [...link, name, /ur[il]|link|href/.test(name) ? next.url : next.cursor]
}

/**
 * Returns the parameters that name the position where the page begins: `after`, and upstream's own cursor parameter. Where
 * upstream's envelope has no cursor, clients may send the id of the last item, under the names that services use for it.
 */
function pagersOf({ cursor, onward }: Frame): string[] {
  const own = onward?.param ?? null
  return [...new Set([...(cursor === null ? LAST_ID_PARAMS : ['after']), ...(own === null ? [] : [own])])]
}

function readAfter(query: URLSearchParams, names: readonly string[]): string | null {
  return names.map((name) => onlyValue(query, name)).find((value) => value !== null) ?? null
}

/** Reads the rows of a page; none behind the last entry. */
function readRows({ catalog }: Source, asking: EntryQuery, skipped: number): OrderedEntry[] {
  const { matches = 0 } = asking
  const isBeyond = matches === 0 || skipped >= matches
  return isBeyond ? [] : catalog.listEntries({ ...asking, maxBytes: MAX_PAGE_BYTES })
}

/** Returns the position behind the first entries, or the beginning. */
function placeBehind({ catalog }: Source, asking: EntryQuery, skipped: number): ListPosition | null {
  return skipped === 0 ? null : catalog.positionAfter(asking, skipped)
}

/** The way to the next page: a cursor, and, where upstream gives URLs, one of the mirror's own. */
function nextOf(
  call: ReadCall,
  { query, path, pagers }: { query: URLSearchParams; path: string; pagers: readonly string[] },
  cursor: string,
): { cursor: string; url: string } {
  const next = new URLSearchParams(query)
  for (const name of [...LAST_ID_PARAMS, ...pagers]) next.delete(name)
  next.set('after', cursor)
  return { cursor, url: `${call.baseUrl()}${path}?${next.toString()}` }
}

/** Returns the mirror's URLs of the page that is asked for and of the first one. */
function urlsOf(call: ReadCall, query: URLSearchParams, path: string) {
  const base = call.baseUrl()
  const first = new URLSearchParams(query)
  for (const name of LAST_ID_PARAMS) first.delete(name)
  const urlOf = (params: URLSearchParams): string => base + path + (params.size === 0 ? '' : `?${params.toString()}`)
  return { base, self: urlOf(query), first: urlOf(first) }
}

/** What is remembered at most: counts of different filters, and fields of different lists. */
const KEPT = 1000

type Source = Pick<Reads, 'catalog'>

/** What takes a look at a whole list, remembered until the next snapshot (`version`). */
function createCounts(reads: Source) {
  const counts = new Map<string, unknown>()
  let talliedFor = ''
  const remembered = <Value>(version: string, key: string, count: () => Value): Value => {
    if (version !== talliedFor || counts.size >= KEPT) counts.clear()
    talliedFor = version
    if (counts.has(key)) return counts.get(key) as Value // what this key was set to
    const made = count()
    counts.set(key, made)
    return made
  }
  return {
    /** How many entries of a list the filters leave. */
    countOf(version: string, list: CatalogList, where: readonly Where[]): number {
      if (where.length === 0) return list.entries
      return remembered(version, `count ${list.id} ${JSON.stringify(where)}`, () =>
        reads.catalog.countEntries(list.id, where),
      )
    },
    /** The names of the fields that items of a list have. */
    fieldsOf(version: string, list: CatalogList): readonly string[] {
      return (
        reads.catalog.readFieldNames(list.id) ??
        remembered(version, `fields ${list.id}`, () => reads.catalog.findFieldNames(list.id))
      )
    },
    /**
     * Throws `not_supported` for a filter that no item of the list can match: no item has its field, or
     * none has a value of a comparable type.
     */
    checkFilters(list: CatalogList, facets: readonly Facet[], where: readonly Where[]): void {
      if (list.entries === 0) return
      for (const { facet } of where) {
        const { param, field, values } = facets[facet] ?? {}
        if (reads.catalog.hasFacet(list.id, facet, values)) continue
        throw unknownField(param ?? '', field ?? '')
      }
    },
    /** Throws `not_supported` for an order by a facet that no item has. */
    checkOrder(list: CatalogList, facets: readonly Facet[], facet: number | null): void {
      if (facet === null || list.entries === 0 || reads.catalog.hasFacet(list.id, facet)) return
      throw unknownField('order', facets[facet]?.field ?? '')
    },
  }
}

/**
 * Returns how many items come before the page that a request asks for by its number or an offset, as upstream's own lists are
 * asked; null where it does not. Throws `bad_request` for what is no number.
 */
function readSkipped(
  query: URLSearchParams,
  { onward, envelope, items }: Pick<Frame, 'onward' | 'envelope' | 'items'>,
  limit: number,
): number | null {
  const param = onward?.param ?? null
  const isNumbered = onward?.firstPage !== undefined
  if (param === null || (!isNumbered && !isOffset(param))) return null
  const text = onlyValue(query, param)
  if (text === null) return null
  if (!/^\d{1,9}$/.test(text))
    throw new MirrorError('bad_request', `${param} must be a whole number of at most nine digits`)
  const first = isNumbered ? onward.firstPage : positionIn(envelope, items, param)
  return Math.max(0, Number(text) - (first === 1 ? 1 : 0)) * (isNumbered ? limit : 1)
}
