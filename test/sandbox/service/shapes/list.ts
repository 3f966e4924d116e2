import type { ServiceRequest } from '../request.ts'
import type { ListForm, NextUrl, MemberPath } from './forms.ts'

/** A page of worded items; the cursors are undefined where there is nothing to point at. */
interface ShownPage {
  items: readonly object[]
  after: string | undefined
  before: string | undefined
  limit: number
  total: number
  /** Number of items before it. */
  start: number
}

/** A page in its envelope, and the headers that belong to it. */
interface Enveloped {
  body: unknown
  headers: Record<string, string>
}

/** Puts a page into the envelope that a shape has for it. */
export function enveloped(form: ListForm, page: ShownPage, request: ServiceRequest): Enveloped {
  const { next, estimated = false } = form
  const { after, items } = page
  const headers: Enveloped['headers'] = {}
  if (next.form === 'link' && after !== undefined) headers['Link'] = `<${nextUrl(next, after, request)}>; rel="next"`
  if (next.form === 'header' && after !== undefined) headers[next.name] = after
  if (next.form === 'range') headers['Content-Range'] = rangeOf(page)
  if (form.items.length === 0) return { body: items, headers }
  const body: Record<string, unknown> = {}
  put(body, form.items, items)
  if (next.form === 'cursor') put(body, next.at, after ?? ending(next.end, page.before))
  if (next.form === 'lastId') put(body, next.at, after !== undefined)
  if (next.form === 'url') {
    const url = after === undefined ? ending(next.end, undefined) : nextUrl(next, after, request)
    put(body, next.at, url)
  }
  if (next.form === 'page') {
    put(body, next.number, Math.floor(page.start / page.limit) + next.first)
    put(body, next.pages, Math.max(1, Math.ceil(page.total / page.limit)))
  }
  put(body, form.previous, page.before ?? null)
  putLinks(body, form, request)
  put(body, form.limit, page.limit)
  if (estimated) put(body, form.total?.with(-1, `${form.total.at(-1) ?? ''}_is_estimated`), true)
  put(body, form.total, estimated ? Math.ceil(page.total / 10) * 10 : page.total)
  return { body, headers }
}

/** The parameters that may carry a cursor; the contract's `after` does too, but for forms of their own. */
export function cursorAsked({ next }: Pick<ListForm, 'next'>, query: URLSearchParams): string {
  const own = query.get(next.parameter) || ''
  const takesAfter = ['cursor', 'url', 'link', 'lastId'].includes(next.form)
  const isOwn = next.form === 'cursor' && next.own === true
  return own !== '' || !takesAfter || isOwn ? own : query.get('after') || ''
}

function rangeOf({ items, start, total }: ShownPage): string {
  return items.length === 0 ? `items */${total}` : `items ${start}-${start + items.length - 1}/${total}`
}

/** Undefined leaves the field out. */
function ending(end: 'absent' | 'null' | 'empty' | 'varied', before: string | undefined): string | null | undefined {
  if (end === 'absent' || (end === 'varied' && before === undefined)) return undefined
  return end === 'empty' ? '' : null
}

function nextUrl({ style, keeps, parameter }: NextUrl, after: string, request: ServiceRequest): string {
  const query = new URLSearchParams(keeps ? request.query : undefined)
  query.delete('after')
  query.set(parameter, after)
  const search = `?${query.toString()}`
  if (style === 'query') return search
  const path = request.path + search
  return style === 'path' ? path : `http://${request.headers.host ?? ''}${path}`
}

/** Puts the links to the page itself, the first and the last one, as whole URLs. */
function putLinks(body: Record<string, unknown>, { links }: ListForm, { path, query, headers }: ServiceRequest): void {
  if (links === undefined) return
  const place = `http://${headers.host ?? ''}${path}`
  const urls = { self: `${place}?${query.toString()}`, first: place, last: `${place}?cursor=last` }
  for (const [name, url] of Object.entries(urls))
    put(body, [...links.at, name], links.form === 'hal' ? { href: url } : url)
}

function put(body: Record<string, unknown>, at: MemberPath | undefined, value: unknown): void {
  const last = at?.at(-1)
  if (at === undefined || last === undefined || value === undefined) return
  let inner = body
  for (const name of at.slice(0, -1)) inner = (inner[name] ??= {}) as Record<string, unknown>
  inner[last] = value
}
