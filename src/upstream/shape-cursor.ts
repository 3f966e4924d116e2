import { MirrorError } from '../errors.ts'

export type Fields = Readonly<Record<string, unknown>>

/**
 * What the place of the next page is called, small letters only, best first. A name of an earlier row counts even
 * when it says "no more": `after` beside `next` is what this page was asked for.
 */
const RANKS: readonly ReadonlySet<string>[] = [
  new Set([
    'next',
    'nextcursor',
    'nextafter',
    'nextpage',
    'nextpagetoken',
    'nexttoken',
    'nexturl',
    'nextlink',
    'continuation',
    'continuationtoken',
  ]),
  new Set(['after', 'endcursor', 'cursorafter']),
  new Set(['cursor']),
]

const MORE = new Set(['hasmore', 'hasnext', 'hasnextpage', 'more'])
const TOTAL = new Set(['total', 'totalcount', 'totalitems', 'totalresults', 'totalrecords'])
const DEPTH = 3

interface Place {
  path: string[]
  name: string
  value: unknown
}

/** Where a page names the next one, and the value for `after`. Throws `upstream_shape` when two places disagree. */
export function findCursor(
  page: Fields,
  itemsPath: readonly string[],
): { next: string | null; cursorPath: string[] | null } {
  const places = placesOf(page, itemsPath)
  const ended = places.some(({ name, value }) => MORE.has(name) && value === false)
  for (const names of RANKS) {
    const named = places.filter(({ name, value }) => names.has(name) && isCursor(value))
    const [first] = named
    if (first === undefined) continue
    const told = named.flatMap(({ path, value }) => {
      const after = afterOf(value)
      return after === null ? [] : [{ path, after }]
    })
    const [best] = told
    if (best === undefined || ended) return { next: null, cursorPath: (best ?? first).path }
    if (told.some(({ after }) => after !== best.after)) {
      const where = told.map(({ path }) => path.join('.')).join(', ')
      throw unclear(`names the next page in several places, each in its own way: ${where}`)
    }
    return { next: best.after, cursorPath: best.path }
  }
  return { next: null, cursorPath: null }
}

/** Where a page tells how many items there are in all, if it does. */
export function findTotal(page: Fields, itemsPath: readonly string[]): string[] | null {
  const place = placesOf(page, itemsPath).find(
    ({ name, value }) => TOTAL.has(name) && Number.isSafeInteger(value),
  )
  return place?.path ?? null
}

/** Every field of the page and of the objects in it, the items left out. */
function placesOf(page: Fields, itemsPath: readonly string[]): Place[] {
  const walk = (fields: Fields, above: readonly string[]): Place[] =>
    Object.entries(fields).flatMap(([key, value]) => {
      const path = [...above, key]
      if (path.join('\0') === itemsPath.join('\0')) return []
      const own = { path, name: key.toLowerCase().replace(/[^a-z]/g, ''), value }
      return isObject(value) && path.length < DEPTH ? [own, ...walk(value, path)] : [own]
    })
  return walk(page, [])
}

/** A text, a number, null for "no more", or an object that holds a link. Not `next: true`, nor a group of fields. */
function isCursor(value: unknown): boolean {
  if (value === null || typeof value === 'string' || typeof value === 'number') return true
  return linkOf(value) !== null
}

function afterOf(value: unknown): string | null {
  const text = linkOf(value) ?? (typeof value === 'number' ? String(value) : value)
  if (typeof text !== 'string' || text === '') return null
  const isUrl = /^https?:\/\//i.test(text) || /[?&]after=/.test(text)
  if (!isUrl) return text
  const after = URL.parse(text, 'http://relative.invalid/')?.searchParams.get('after') ?? null
  if (after !== null) return after === '' ? null : after
  throw unclear('names the next page by a URL without the parameter "after"')
}

/** `{"href": "…"}` and `{"url": "…"}`, as hypermedia formats have it. */
function linkOf(value: unknown): string | null {
  if (!isObject(value)) return null
  const link = value['href'] ?? value['url']
  return typeof link === 'string' ? link : null
}

/** Whether a JSON value is an object, and no array. */
export function isObject(value: unknown): value is Fields {
  return typeof value === 'object' && value !== null && !Array.isArray(value)
}

/** The error for a page that is no list that we understand. */
export function unclear(why: string): MirrorError {
  return new MirrorError('upstream_shape', `the list ${why}`)
}
