import { createHash } from 'node:crypto'
import { isDeepStrictEqual } from 'node:util'
import type { ListForm, MemberPath } from '../../sandbox/service/shapes/shape.ts'
import { readPage, valueAt, walkList } from '../walk.ts'
import type { CatalogBench } from './mirror.ts'

/** A path that service and mirror answer differently, and how. */
export interface Difference {
  path: string
  mirror: unknown
  upstream: unknown
}

type Ask = (path: string) => Promise<Response>

/**
 * Asks both for the same path and gives back how they differ, null when they agree. Bytes and media types are compared for
 * what names no address; links, and redirects, by the bytes and types that they lead to; refusals by their status alone, for
 * each speaks for itself. `typed`: whether the service gives its documents a media type.
 */
export async function itemDifference(made: CatalogBench, path: string, typed = true): Promise<Difference | null> {
  const asked = [made.ask(path), made.askUpstream(path)] as const
  const [mirror, upstream] = await Promise.all(asked.map((answer) => read(answer, typed)))
  return isDeepStrictEqual(mirror, upstream) ? null : { path, mirror, upstream }
}

/**
 * The same for a list: both are walked to their end by the rule of upstream's shape, for whoever can read the one must be
 * able to read the other. Where upstream gives pages as large as asked for, the first page is compared as a whole.
 */
export async function listDifference(made: CatalogBench, path: string, form: ListForm): Promise<Difference | null> {
  const [mirror, upstream] = await Promise.all([made.ask(path), made.askUpstream(path)])
  const statuses = { mirror: mirror.status, upstream: upstream.status }
  if (statuses.upstream !== 200) return statuses.mirror === statuses.upstream ? null : { path, ...statuses }
  const walks = await Promise.all([walked(made.ask, path, form), walked(made.askUpstream, path, form)])
  if (!isDeepStrictEqual(walks[0], walks[1])) return { path, mirror: walks[0], upstream: walks[1] }
  const limit = Number(new URL(path, 'http://host').searchParams.get('limit') ?? Infinity)
  const isWhole = limit <= form.largestPage
  const pages = await Promise.all([pageOf(mirror, path, form, isWhole), pageOf(upstream, path, form, isWhole)])
  return isDeepStrictEqual(pages[0], pages[1]) ? null : { path, mirror: pages[0], upstream: pages[1] }
}

/** The items of a walk, or why it did not come to an end. */
async function walked(ask: Ask, path: string, form: ListForm): Promise<unknown> {
  try {
    return (await walkList(ask, path, form)).items
  } catch (error) {
    return error instanceof Error ? error.message : error
  }
}

/** What a page says beside its cursors; without what depends on the size of the page unless that is `whole`. */
async function pageOf(response: Response, path: string, form: ListForm, whole: boolean): Promise<unknown> {
  const body: unknown = await response.clone().json()
  const { items, next } = await readPage(response, path, form)
  const about = { type: response.headers.get('content-type'), total: totalOf(body, form) }
  const names = form.items.length === 0 ? [] : leftOf(body, form)
  if (!whole) return { ...about, names }
  return { ...about, names, items, ...(form.emptyLast ? {} : { hasNext: next !== null }) }
}

function totalOf(body: unknown, { total, estimated = false }: ListForm): unknown {
  return total === undefined || estimated ? null : valueAt(body, total)
}

/** The envelope without the items and without all that is a page's own. */
function leftOf(body: unknown, form: ListForm): unknown {
  const { items, next, previous, limit, total, links } = form
  const own = [items, previous, limit, total, links?.at, ...placesOf(next)]
  return own.reduce((left, place) => (place === undefined ? left : without(left, place)), body)
}

function placesOf(next: ListForm['next']): (MemberPath | undefined)[] {
  if ('at' in next) return [next.at]
  return next.form === 'page' ? [next.number, next.pages] : []
}

function without(value: unknown, [name, ...rest]: MemberPath): unknown {
  if (name === undefined || typeof value !== 'object' || value === null) return value
  const leftIn = (inner: unknown): unknown => (rest.length === 0 ? {} : without(inner, rest))
  const entries = Object.entries(value).flatMap(([key, inner]: [string, unknown]) => {
    const left: unknown = key === name ? leftIn(inner) : inner
    return isEmpty(left) ? [] : [[key, left]] // an object around nothing else may be left out too
  })
  return Object.fromEntries(entries)
}

function isEmpty(value: unknown): boolean {
  return isDeepStrictEqual(value, {})
}

async function read(asked: Promise<Response>, typed: boolean): Promise<{ status: number; body: unknown }> {
  const response = await asked
  const { status } = response
  const bytes = Buffer.from(await response.arrayBuffer())
  if (status !== 200) return { status, body: null }
  const value = parsed(bytes)
  const hasLinks = JSON.stringify(value ?? null).includes('http://127.0.0.1')
  return { status, body: hasLinks ? await resolved(value, typed) : said(response, bytes, typed) }
}

/** A document by its bytes, and by its media type where that is compared. */
function said({ headers }: Response, bytes: Buffer, typed: boolean): string {
  return `${typed ? headers.get('content-type') : 'any type'} ${digestOf(bytes)}`
}

function parsed(bytes: Buffer): unknown {
  try {
    return JSON.parse(bytes.toString())
  } catch {
    return undefined // a document that is no JSON
  }
}

async function resolved(value: unknown, typed: boolean): Promise<unknown> {
  if (typeof value === 'string') return value.startsWith('http://127.0.0.1') ? documentAt(value, typed) : value
  if (typeof value !== 'object' || value === null) return value
  if (Array.isArray(value)) return Promise.all(value.map((one) => resolved(one, typed)))
  const entries = Object.entries(value).map(async ([name, inner]) => [
    name,
    isSelf(name) ? 'the answer itself' : await resolved(inner, typed),
  ])
  return Object.fromEntries((await Promise.all(entries)) as [string, unknown][])
}

/** A link of an answer to itself leads to the same answer, with other addresses in it. */
function isSelf(name: string): boolean {
  return name === 'self'
}

/** What a link leads to, without any credential. */
async function documentAt(url: string, typed: boolean): Promise<string> {
  const response = await fetch(url)
  const bytes = Buffer.from(await response.arrayBuffer())
  return `${response.status} ${said(response, bytes, typed)}`
}

function digestOf(bytes: Buffer): string {
  return createHash('sha256').update(bytes).digest('hex')
}
