/** A page of a list as a service answers it. */
export interface FormPage {
  status?: number
  body: unknown
  headers?: Record<string, string>
}

/** What a page shows: its items, their place in the list, and the list's length. */
interface Shown {
  items: readonly object[]
  start: number
  size: number
  all: number
  /** The offset of the next page; null on the last. */
  more: number | null
}

/** A form of paging: by which parameter pages are asked for, and what a page says. */
export interface PagingForm {
  /** Returns the offset that a request asks for; null: the service refuses it with 400. */
  startOf: (query: URLSearchParams, size: number, all: number) => number | null
  says: (shown: Shown, query: URLSearchParams) => FormPage
  /** Whether pages are never larger than this, whatever `limit` asks for; null: pages have the size that is asked for. */
  fixed: number | null
  /** Whether a smaller `limit` than the fixed size is kept. */
  isCapped?: boolean
  /** The largest `limit`: a larger one is refused with 400. */
  largest?: number
  /** Whether anything on a page that is not the last says that there is more. */
  isTelling: boolean
  /** Whether every page says the same, the last one too. */
  isConstant?: boolean
  /** Whether a request can lead to every page. */
  isPaged: boolean
}

type StartOf = PagingForm['startOf']
type Says = PagingForm['says']

const SIZE = 25
const numberIn = (text: string | null): number => Number(/\d+$/.exec(text ?? '')?.[0] ?? 0)

/** Ways to ask for a page. */
const unpaged: StartOf = () => 0
const byCursor =
  (param: string): StartOf =>
  (query) =>
    numberIn(query.get(param))
const byId =
  (param: string): StartOf =>
  (query) =>
    numberIn(query.get(param)) // the id of an item is its number, from 1
const byPosition: StartOf = (query) => Math.max(1, numberIn(query.get('startIndex'))) - 1
const byOffset: StartOf = (query) => numberIn(query.get('offset'))
const byPage =
  (param: string, first: 0 | 1): StartOf =>
  (query, size) =>
    Math.max(0, (query.has(param) ? numberIn(query.get(param)) : first) - first) * size
const byPageOr404: StartOf = (query, size, all) => {
  const start = byPage('page', 1)(query, size, all) ?? 0
  return start > 0 && start >= all ? null : start
}

const plain: Says = ({ items }) => ({ body: { data: items } })
const member =
  (fields: (shown: Shown) => object): Says =>
  (shown) => ({ body: { data: shown.items, ...fields(shown) } })
const header =
  (fields: (shown: Shown) => Record<string, string>): Says =>
  (shown) => ({ body: { data: shown.items }, headers: fields(shown) })
const cursorOf = ({ more }: Shown): string | null => (more === null ? null : `c-${more}`)
const idOf = ({ items, start }: Shown): string | null => (items.length === 0 ? null : `t-${start + items.length}`)
const pagesOf = ({ all, size }: Shown): number => Math.max(1, Math.ceil(all / size))
const pageOf = ({ start, size }: Shown): number => Math.floor(start / size) + 1
const rangeOf = ({ start, items, all }: Shown): string =>
  items.length === 0 ? `*/${all}` : `${start}-${start + items.length - 1}/${all}`

const form = (startOf: StartOf, says: Says, isTelling: boolean, fixed: number | null = SIZE): PagingForm => ({
  startOf,
  says,
  isTelling,
  fixed,
  isPaged: startOf !== unpaged,
})

/** A form with a header that is the same on every page. */
function constant(startOf: StartOf): PagingForm {
  const says = header(() => ({ 'x-next-token': 'abc' }))
  return { ...form(startOf, says, true), isConstant: true }
}

/** A silent form that keeps to `limit` up to a cap. */
function capped(startOf: StartOf, fixed = SIZE): PagingForm {
  return { ...form(startOf, plain, false, fixed), isCapped: true }
}

/** Forms of paging that services have. */
export const PAGING_FORMS: Readonly<Record<string, PagingForm>> = {
  'nothing, unpaged': form(unpaged, plain, false, Infinity),
  'nothing, a fixed page': form(unpaged, plain, false),
  'nothing, the limit is kept, last id': form(byId('after'), plain, false, null),
  'nothing, a fixed page, last id': form(byId('after'), plain, false),
  'nothing, a fixed page, starting_after': form(byId('starting_after'), plain, false),
  'nothing, a fixed page, offset': form(byOffset, plain, false),
  'nothing, a fixed page, page numbers': form(byPage('page', 1), plain, false),
  'nothing, a fixed page, page numbers from 0': form(byPage('page', 0), plain, false),
  'nothing, a fixed page, page[number]': form(byPage('page[number]', 1), plain, false),
  'nothing, a fixed page, pageNumber': form(byPage('pageNumber', 1), plain, false),
  'nothing, a fixed page, page numbers and 400 behind the last': form(byPageOr404, plain, false),
  'a bare array': form(unpaged, ({ items }) => ({ body: items }), false, Infinity),
  'a header X-Next-Cursor': form(
    byCursor('cursor'),
    header((s) => ({ ...(cursorOf(s) !== null && { 'x-next-cursor': `c-${s.more}` }) })),
    true,
  ),
  'a header X-Next-Page': form(
    byPage('page', 1),
    header((s) => ({ ...(s.more !== null && { 'x-next-page': String(pageOf(s) + 1) }) })),
    true,
  ),
  'a header X-Next-Page without a way': form(
    unpaged,
    header((s) => ({ ...(s.more !== null && { 'x-next-page': '2' }) })),
    true,
  ),
  'a header X-Has-More, offset': form(
    byOffset,
    header((s) => ({ 'x-has-more': String(s.more !== null) })),
    true,
  ),
  'a header X-Total-Pages, page numbers': form(
    byPage('page', 1),
    header((s) => ({ 'x-total-pages': String(pagesOf(s)) })),
    true,
  ),
  'a header X-Total-Count, offset': form(
    byOffset,
    header((s) => ({ 'x-total-count': String(s.all) })),
    true,
  ),
  'a header Content-Range, offset': form(
    byOffset,
    header((s) => ({ 'content-range': `items ${rangeOf(s)}` })),
    true,
  ),
  'a header Content-Range without a way': form(
    unpaged,
    header((s) => ({ 'content-range': `items ${rangeOf(s)}` })),
    true,
  ),
  'a header Link': form(
    byPage('page', 1),
    (s) => ({
      body: s.items,
      headers: { ...(s.more !== null && { link: `<?page=${pageOf(s) + 1}>; rel="next"` }) },
    }),
    true,
  ),
  'is_last_page, last id': form(
    byId('after'),
    member((s) => ({ is_last_page: s.more === null })),
    true,
  ),
  'is_last_page and a last id that is not understood': form(
    unpaged,
    member((s) => ({ is_last_page: s.more === null, last_id: idOf(s) })),
    true,
  ),
  'isLast, page numbers': form(
    byPage('page', 1),
    member((s) => ({ isLast: s.more === null })),
    true,
  ),
  'done, offset': form(
    byOffset,
    member((s) => ({ meta: { done: s.more === null } })),
    true,
  ),
  'has_more as a text, offset': form(
    byOffset,
    member((s) => ({ has_more: s.more === null ? 'false' : 'true' })),
    true,
  ),
  'remaining, offset': form(
    byOffset,
    member((s) => ({ remaining: s.all - s.start - s.items.length })),
    true,
  ),
  'a total, offset': form(
    byOffset,
    member((s) => ({ total: s.all })),
    true,
  ),
  'a total without a way': form(
    unpaged,
    member((s) => ({ total: s.all })),
    true,
  ),
  'a total as an object': form(
    byOffset,
    member((s) => ({ total: { value: s.all, relation: 'eq' } })),
    true,
  ),
  'a total deep, without a way': form(
    unpaged,
    member((s) => ({ meta: { page: { info: { hits: { total: { value: s.all } } } } } })),
    true,
  ),
  'a total as a text': form(
    byOffset,
    member((s) => ({ meta: { total: String(s.all) } })),
    true,
  ),
  'a lower bound of the total': form(
    byOffset,
    member((s) => ({ total: { value: s.all, relation: 'gte' } })),
    true,
  ),
  'a range as a text': form(
    byOffset,
    member((s) => ({ range: rangeOf(s) })),
    true,
  ),
  'page and total_pages, page numbers': form(
    byPage('page', 1),
    member((s) => ({ page: pageOf(s), total_pages: pagesOf(s) })),
    true,
  ),
  'page and total_pages without a way': form(
    unpaged,
    member((s) => ({ page: 1, total_pages: pagesOf(s) })),
    true,
  ),
  'Spring pages from 0': form(
    byPage('page', 0),
    member((s) => ({
      last: s.more === null,
      totalPages: pagesOf(s),
      totalElements: s.all,
      number: pageOf(s) - 1,
      size: s.size,
      numberOfElements: s.items.length,
    })),
    true,
  ),
  'Laravel pages': form(
    byPage('page', 1),
    member((s) => ({
      current_page: pageOf(s),
      last_page: pagesOf(s),
      per_page: s.size,
      total: s.all,
      next_page_url: s.more === null ? null : `/v1/patches?page=${pageOf(s) + 1}`,
    })),
    true,
  ),
  'page n of m': form(
    byPage('page', 1),
    member((s) => ({ page: { number: pageOf(s), of: pagesOf(s) } })),
    true,
  ),
  'resume_key under its own name': form(
    byCursor('resume_key'),
    member((s) => ({ ...(s.more !== null && { resume_key: `c-${s.more}` }) })),
    true,
  ),
  'a nested resume token under its own name': form(
    byCursor('resumeToken'),
    member((s) => ({ paging: { resumeToken: cursorOf(s) } })),
    true,
  ),
  'a next_cursor for cursor': form(
    byCursor('cursor'),
    member((s) => ({ next_cursor: cursorOf(s) })),
    true,
  ),
  'a cursor that repeats at the end': form(
    byCursor('after'),
    (s, query) => ({
      body: {
        data: s.items,
        cursor: s.more === null ? (query.get('after') ?? null) : `c-${s.more}`,
      },
    }),
    true,
  ),
  'a cursor that is always given': form(
    byCursor('after'),
    member((s) => ({ next_token: `c-${s.start + s.items.length}` })),
    true,
  ),
  'a count that is the total, offset': form(
    byOffset,
    member((s) => ({ count: s.all })),
    true,
  ),
  'a count of the items at hand, unpaged': form(
    unpaged,
    member((s) => ({
      count: s.items.length,
      page_size: 100,
      took: 5,
      generated_at: '2026-01-02T03:04:05Z',
      last_updated: '2026-01-02T03:04:05Z',
      links: { self: '/v1/patches' },
    })),
    false,
    Infinity,
  ),
  'headers of other meanings, unpaged': form(
    unpaged,
    header(() => ({
      'x-ratelimit-remaining': '12',
      'x-rate-limit-limit': '100',
      'accept-ranges': 'bytes',
      'last-modified': 'Fri, 02 Jan 2026 03:04:05 GMT',
      'x-page-size': '100',
    })),
    false,
    Infinity,
  ),
  'an offset within next': form(
    byOffset,
    member((s) => ({ next: s.more === null ? null : { offset: s.more } })),
    true,
  ),
  'page info': form(
    byCursor('after'),
    member((s) => ({
      pageInfo: { hasNextPage: s.more !== null, endCursor: `c-${s.start + s.items.length}` },
    })),
    true,
  ),
  'a nextLink': form(
    byCursor('$skip'),
    member((s) => ({
      ...(s.more !== null && { '@odata.nextLink': `/v1/patches?$skip=${s.more}` }),
    })),
    true,
  ),
  'a continuation token in a header': form(
    byCursor('continuation_token'),
    header((s) => ({ ...(s.more !== null && { 'x-continuation-token': `c-${s.more}` }) })),
    true,
  ),
  'a page number that stays at the last page': form(
    (query, size, all) =>
      Math.min(byPage('page', 1)(query, size, all) ?? 0, Math.max(0, Math.ceil(all / size) - 1) * size),
    plain,
    false,
  ),
  'an offset, and 400 behind the last': form(
    (query, size, all) => {
      const start = byOffset(query, size, all) ?? 0
      return start > 0 && start >= all ? null : start
    },
    member((s) => ({ more_available: s.more !== null })),
    true,
  ),
  'a cursor, and 400 for parameters of others': form(
    (query) =>
      [...query.keys()].every((name) => ['limit', 'cursor'].includes(name)) ? numberIn(query.get('cursor')) : null,
    member((s) => ({ next_cursor: cursorOf(s) })),
    true,
  ),
  'a header that is the same on every page, page numbers': constant(byPage('page', 1)),
  'a header that is the same on every page, offset': constant(byOffset),
  'a header that is the same on every page, last id': constant(byId('after')),
  'a range without any total, offset': form(
    byOffset,
    (s) => ({
      status: s.more === null ? 200 : 206,
      body: s.items,
      headers: { 'content-range': `items ${s.start}-${s.start + s.items.length - 1}/*` },
    }),
    true,
  ),
  'isLastPage and nextPageStart': form(
    byCursor('start'),
    member((s) => ({
      start: s.start,
      limit: 25,
      size: s.items.length,
      isLastPage: s.more === null,
      ...(s.more !== null && { nextPageStart: s.more }),
    })),
    true,
  ),
  'a link to the last page alone, page numbers': form(
    byPage('page', 1),
    member((s) => ({
      links: { self: `/v1/patches?page=${pageOf(s)}`, last: `/v1/patches?page=${pagesOf(s)}` },
    })),
    true,
  ),
  'a range without a total': form(
    byOffset,
    header((s) => ({
      'content-range': `items ${s.start}-${s.start + s.items.length - 1}/${s.more === null ? s.all : '*'}`,
    })),
    true,
  ),
  'a count in words': form(
    byOffset,
    member((s) => ({ count: `${s.items.length} of ${s.all}` })),
    true,
  ),
  'eof, last id': form(
    byId('after'),
    member((s) => ({ eof: s.more === null })),
    true,
  ),
  'hasnextpage in small letters, page numbers': form(
    byPage('page', 1),
    member((s) => ({ hasnextpage: s.more !== null })),
    true,
  ),
  'more as a number, offset': form(
    byOffset,
    member((s) => ({ more: s.more === null ? 0 : 1 })),
    true,
  ),
  'X-Total, without a way': form(
    unpaged,
    header((s) => ({ 'x-total': String(s.all) })),
    true,
  ),
  'X-Remaining-Items, offset': form(
    byOffset,
    header((s) => ({ 'x-remaining-items': String(s.all - s.start - s.items.length) })),
    true,
  ),
  '@odata.count, without a way': form(
    unpaged,
    member((s) => ({ '@odata.count': s.all })),
    true,
  ),
  'JSON:API links': form(
    byPage('page[number]', 1),
    member((s) => ({
      links: {
        self: `/v1/patches?page[number]=${pageOf(s)}`,
        first: '/v1/patches?page[number]=1',
        last: `/v1/patches?page[number]=${pagesOf(s)}`,
        next: s.more === null ? null : `/v1/patches?page[number]=${pageOf(s) + 1}`,
      },
    })),
    true,
  ),
  'HAL links and pages': form(
    byPage('page', 1),
    (s) => ({
      body: {
        _embedded: { patches: s.items },
        _links: {
          self: { href: `/v1/patches?page=${pageOf(s)}` },
          ...(s.more !== null && { next: { href: `/v1/patches?page=${pageOf(s) + 1}` } }),
        },
        page: { size: s.size, totalElements: s.all, totalPages: pagesOf(s), number: pageOf(s) },
      },
    }),
    true,
  ),
  'a range of positions, page numbers': form(
    byPage('page', 1),
    member((s) => ({ range: { from: s.start + 1, to: s.start + s.items.length } })),
    false,
  ),
  'last_index of the page, page numbers': form(
    byPage('page', 1),
    member((s) => ({ last_index: s.start + s.items.length })),
    false,
  ),
  'last_row of the page, page numbers': form(
    byPage('page', 1),
    member((s) => ({ last_row: s.start + s.items.length })),
    false,
  ),
  'total_returned of the page, page numbers': form(
    byPage('page', 1),
    member((s) => ({ total_returned: s.items.length })),
    false,
  ),
  'a total of the response, page numbers': form(
    byPage('page', 1),
    member((s) => ({ meta: { total_in_response: s.items.length } })),
    false,
  ),
  'X-Total-Returned, page numbers': form(
    byPage('page', 1),
    header((s) => ({ 'x-total-returned': String(s.items.length) })),
    false,
  ),
  'page.total of the items at hand, page numbers': form(
    byPage('page', 1),
    member((s) => ({ page: { number: pageOf(s), total: s.items.length } })),
    false,
  ),
  'page.total of all pages, page numbers': form(
    byPage('page', 1),
    member((s) => ({ page: { number: pageOf(s), total: pagesOf(s) } })),
    false,
  ),
  'page.total of all items, page numbers': form(
    byPage('page', 1),
    member((s) => ({ page: { total: s.all } })),
    true,
  ),
  'page and last_page from 0': form(
    byPage('page', 0),
    member((s) => ({ page: pageOf(s) - 1, last_page: pagesOf(s) - 1 })),
    true,
  ),
  'last_page from 0 alone': form(
    byPage('page', 0),
    member((s) => ({ last_page: pagesOf(s) - 1 })),
    true,
  ),
  'page and last_page without a way': form(
    unpaged,
    member((s) => ({ page: 1, last_page: pagesOf(s) })),
    true,
  ),
  'cursor.token for token': form(
    byCursor('token'),
    member((s) => ({ cursor: s.more === null ? {} : { token: `c-${s.more}` } })),
    true,
  ),
  'cursor.value for cursor': form(
    byCursor('cursor'),
    member((s) => ({ cursor: { value: cursorOf(s), limit: SIZE } })),
    true,
  ),
  'cursor.id for after': form(
    byCursor('after'),
    member((s) => ({ cursor: s.more === null ? {} : { id: s.more } })),
    true,
  ),
  'cursor.position for position': form(
    byCursor('position'),
    member((s) => ({ cursor: { position: s.more, before: 'x' } })),
    true,
  ),
  'cursor.key without a way': form(
    unpaged,
    member((s) => ({ cursor: { key: cursorOf(s) } })),
    true,
  ),
  'nothing, the limit is kept up to 25, in a way of its own': {
    ...capped((query) => numberIn(query.get('beginning'))),
    isPaged: false,
  },
  'nothing, the limit is kept up to 40, page numbers': capped(byPage('page', 1), 40),
  'nothing, the limit is kept up to 40, page numbers from 0': capped(byPage('page', 0), 40),
  'nothing, the limit is kept up to 40, offset': capped(byOffset, 40),
  'nothing, the limit is kept up to 40, skip': capped((query) => numberIn(query.get('skip')), 40),
  'nothing, the limit is kept, unpaged': { ...capped(unpaged, 100_000), isPaged: false },
  'an array of links to the next page': form(
    byPage('page', 1),
    member((s) => ({
      _links: { next: s.more === null ? [] : [{ href: `/v1/patches?page=${pageOf(s) + 1}` }] },
    })),
    true,
  ),
  'a link with several relations': form(
    byPage('page', 1),
    member((s) => ({
      links: s.more === null ? [] : [{ rel: ['next'], href: `/v1/patches?page=${pageOf(s) + 1}` }],
    })),
    true,
  ),
  'cursors in an array, without a way': form(
    unpaged,
    member((s) => ({ cursors: s.more === null ? [] : [cursorOf(s)] })),
    true,
  ),
  'X-Pagination as JSON, page numbers': form(
    byPage('page', 1),
    header((s) => ({
      'x-pagination': JSON.stringify({
        TotalCount: s.all,
        CurrentPage: pageOf(s),
        HasNext: s.more !== null,
      }),
    })),
    true,
  ),
  'X-Pagination as JSON, without a way': form(
    unpaged,
    header((s) => ({ 'x-pagination': JSON.stringify({ TotalPages: pagesOf(s) }) })),
    true,
    40,
  ),
  'is_last_page as a number, without a way': form(
    unpaged,
    member((s) => ({ is_last_page: s.more === null ? 1 : 0 })),
    true,
    40,
  ),
  'a total in an array, without a way': form(
    unpaged,
    member((s) => ({ total: [s.all] })),
    true,
    40,
  ),
  'counts.all, without a way': form(
    unpaged,
    member((s) => ({ counts: { all: s.all, high: 3 } })),
    true,
    40,
  ),
  'numFound, without a way': form(
    unpaged,
    member((s) => ({ numFound: s.all })),
    true,
    40,
  ),
  'incomplete_results, without a way': form(
    unpaged,
    member((s) => ({ incomplete_results: s.more !== null })),
    true,
    40,
  ),
  'results_truncated, without a way': form(
    unpaged,
    member((s) => ({ results_truncated: s.more !== null })),
    true,
    40,
  ),
  'a next_cursor, and 400 for a limit above 100': {
    ...form(
      byCursor('after'),
      member((s) => ({ next_cursor: cursorOf(s) })),
      true,
      null,
    ),
    largest: 100,
  },
  'nothing, a limit above 100 is refused, page numbers': {
    ...form(byPage('page', 1), plain, false, null),
    largest: 100,
  },
  'nothing, any limit is refused, unpaged': { ...form(unpaged, plain, false, Infinity), largest: 0 },
  'page, page numbers': form(
    byPage('page', 1),
    member((s) => ({ page: pageOf(s) })),
    false,
  ),
  'page as a text in meta, page numbers': form(
    byPage('page', 1),
    member((s) => ({ meta: { page: String(pageOf(s)) } })),
    false,
  ),
  'page without a way': form(
    unpaged,
    member(() => ({ page: 1 })),
    false,
  ),
  'an attempt count, unpaged': form(
    unpaged,
    header(() => ({ 'x-envoy-attempt-count': '1' })),
    false,
    Infinity,
  ),
  'the time of the next update, unpaged': form(
    unpaged,
    member(() => ({ next_update: '2026-01-02T03:04:05Z' })),
    false,
    Infinity,
  ),
  'totals of other things, unpaged': form(
    unpaged,
    member(() => ({ rate_limit: { total: 5000 }, _shards: { total: 900 }, totals: { high: 800 } })),
    false,
    Infinity,
  ),
  'last_id without a flag, unpaged': form(
    unpaged,
    member((s) => ({ last_id: idOf(s) })),
    false,
    Infinity,
  ),
  'endCursor without a flag, unpaged': form(
    unpaged,
    member((s) => ({ endCursor: `c-${s.all}` })),
    false,
    Infinity,
  ),
  'an object next with a position of its own name': form(
    byCursor('startIndex'),
    member((s) => ({ next: s.more === null ? null : { startIndex: s.more, limit: s.size } })),
    true,
  ),
  'startAt, maxResults and a total': form(
    byCursor('startAt'),
    member((s) => ({ startAt: s.start, maxResults: s.size, total: s.all })),
    true,
  ),
  'startAt and isLast': form(
    byCursor('startAt'),
    member((s) => ({ startAt: s.start, maxResults: s.size, isLast: s.more === null })),
    true,
  ),
  'start and numFound': form(
    byCursor('start'),
    (s) => ({ body: { response: { numFound: s.all, start: s.start, docs: s.items }, params: { rows: '10' } } }),
    true,
  ),
  'startIndex from 1 and totalResults, without a way': form(
    unpaged,
    member((s) => ({ startIndex: 1, itemsPerPage: s.items.length, totalResults: s.all })),
    true,
  ),
  'startIndex from 1 and totalResults': form(
    byPosition,
    member((s) => ({ startIndex: s.start + 1, itemsPerPage: s.items.length, totalResults: s.all })),
    true,
  ),
  'startIndex from 1 alone': form(
    byPosition,
    member((s) => ({ startIndex: s.start + 1 })),
    false,
  ),
  'startIndex that is shown from 1 and asked for from 0': {
    ...form(
      byCursor('startIndex'),
      member((s) => ({ startIndex: s.start + 1, totalResults: s.all })),
      true,
    ),
    isPaged: false,
  },
  'startIndex that stays 1': {
    ...form(
      byPosition,
      member((s) => ({ startIndex: 1, totalResults: s.all })),
      true,
    ),
    isPaged: false,
  },
  'last_page that is 0, page numbers': form(
    byPage('page', 1),
    member((s) => ({ page: pageOf(s), last_page: 0 })),
    false,
  ),
  'total_pages that is 0, page numbers': form(
    byPage('page', 1),
    member(() => ({ total_pages: 0 })),
    false,
  ),
  'page and pages that are 0, page numbers': form(
    byPage('page', 1),
    member(() => ({ page: 0, pages: 0 })),
    false,
  ),
  'page and a last_page that is 0, without a way': form(
    unpaged,
    member(() => ({ page: 1, last_page: 0 })),
    false,
    40,
  ),
  'page and pages that are 0, without a way': form(
    unpaged,
    member(() => ({ page: 0, pages: 0 })),
    false,
    40,
  ),
  'a number of pages that is 0 in an object, without a way': form(
    unpaged,
    member(() => ({ pagination: { totalPages: 0 } })),
    false,
    40,
  ),
  'a number of hits, without a way': form(
    unpaged,
    member((s) => ({ nbHits: s.all })),
    true,
    40,
  ),
  'a length that is the total, without a way': form(
    unpaged,
    member((s) => ({ length: s.all })),
    false,
    40,
  ),
  'a number of an unknown name, without a way': form(
    unpaged,
    member((s) => ({ meta: { matches: s.all } })),
    false,
    40,
  ),
  'a flag of an unknown name, without a way': form(
    unpaged,
    member((s) => ({ end_reached: s.more === null })),
    false,
    40,
  ),
  'a text for people, without a way': form(
    unpaged,
    member((s) => ({ info: { text: `Showing 1-${s.items.length} of ${s.all} tickets` } })),
    true,
    40,
  ),
  'a number of pages for people, without a way': form(
    unpaged,
    member((s) => ({ message: `Page ${pageOf(s)} of ${pagesOf(s)}` })),
    true,
    40,
  ),
  'a total that is exceeded, without a way': form(
    unpaged,
    member((s) => ({ total: s.more === null ? String(s.all) : `${s.items.length}+` })),
    true,
    40,
  ),
  'a number of omitted items, without a way': form(
    unpaged,
    member((s) => ({ omitted: s.all - s.items.length })),
    true,
    40,
  ),
  'a key as an object, without a way': form(
    unpaged,
    member((s) => ({ ...(s.more !== null && { LastEvaluatedKey: { id: { S: idOf(s) } } }) })),
    true,
    40,
  ),
  'a list of values for search_after, without a way': form(
    unpaged,
    member((s) => ({ search_after: s.more === null ? [] : [s.more] })),
    true,
    40,
  ),
  'a next_cursor that is 0 at the end': form(
    byCursor('cursor'),
    member((s) => ({ next_cursor: s.more ?? 0 })),
    true,
  ),
  'is_last as a number, offset': form(
    byOffset,
    member((s) => ({ is_last: s.more === null ? 1 : 0 })),
    true,
  ),
  'a total of the items at hand, page numbers': {
    ...form(
      byPage('page', 1),
      member((s) => ({ total: s.items.length })),
      false,
    ),
    isCapped: true,
  },
  'a flag that is always false, page numbers': {
    ...form(
      byPage('page', 1),
      member(() => ({ has_more: false })),
      false,
    ),
    isCapped: true,
  },
  'a cursor object without a cursor on each page, offset': {
    ...form(
      byOffset,
      member(() => ({ cursor: { after: null } })),
      false,
    ),
    isCapped: true,
  },
  'more as a text beside a marker': form(
    byCursor('marker'),
    member((s) => ({ marker: cursorOf(s), more: s.more === null ? 'false' : 'true' })),
    true,
  ),
  'page_info.count of all items, a cursor': form(
    byCursor('after'),
    member((s) => ({ page_info: { count: s.all, next_cursor: cursorOf(s) } })),
    true,
  ),
  'a header Link with single quotes': form(
    byPage('page', 1),
    (s) => ({ body: s.items, headers: { ...(s.more !== null && { link: `<?page=${pageOf(s) + 1}>; rel='next'` }) } }),
    true,
    40,
  ),
  'a header Link that always names a next page': form(
    byPage('page', 1),
    (s) => ({ body: s.items, headers: { link: `<?page=${pageOf(s) + 1}>; rel="next"` } }),
    true,
  ),
}

/** Returns the answer of a service of a form to a request for a list of these items. */
export function answerIn(
  { startOf, says, fixed, isCapped, largest }: PagingForm,
  all: readonly object[],
  query: URLSearchParams,
): FormPage {
  const asked = Number(query.get('limit') ?? 100)
  if (query.has('limit') && asked > (largest ?? Infinity)) return { status: 400, body: { message: 'no such size' } }
  const most = fixed === null ? asked : Math.min(fixed, 100_000)
  const size = isCapped === true ? Math.min(asked, most) : most
  const start = startOf(query, size, all.length)
  if (start === null) return { status: 400, body: { message: 'no such page' } }
  const items = all.slice(start, start + size)
  const end = start + items.length
  const more = end < all.length ? end : null
  return says({ items, start, size, all: all.length, more }, query)
}
