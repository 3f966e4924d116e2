import { originOf } from '../http/destinations.ts'

/**
 * The next page's request as a text that can be stored: a plain cursor, which is the value of `after`; or, after the
 * mark, a whole target relative to the surface's root.
 */
export type PageKey = string

const MARK = '>'
const SIZES = ['limit', 'page_size', 'pagesize', 'per_page', 'perpage', 'size', 'max_results']

/** Returns the request target of a page; null requests the first one. `limit`: 0 asks for no size. */
export function targetOf(path: string, limit: number, key: PageKey | null): string {
  if (key === null) return limit === 0 ? path : `${path}?limit=${limit}`
  return key.startsWith(MARK) ? key.slice(1) : withValue(path, limit, 'after', key)
}

/** Returns the key of the page after a cursor. */
export function keyOfCursor(path: string, limit: number, param: string, value: string): PageKey {
  if (param === 'after' && !value.startsWith(MARK)) return value
  return MARK + withValue(path, limit, param, value)
}

function withValue(path: string, limit: number, param: string, value: string): string {
  const size = limit === 0 ? '' : `limit=${limit}&`
  return `${path}?${size}${param}=${encodeURIComponent(value.toWellFormed())}`
}

/**
 * Returns the key of the page that a URL names. The request stays on the surface, whatever scheme a proxy put into
 * the URL, and keeps the requested page size if the URL has none. `refused`: why it is not followed.
 */
export function keyOfUrl(
  root: string,
  { path, limit, asked }: { path: string; limit: number; asked: string },
  text: string,
): { key: PageKey } | { refused: string } {
  const from = new URL(root + asked)
  const url = URL.parse(text, from.href)
  if (url === null || !/^https?:$/.test(url.protocol)) return { refused: 'by what is no http URL' }
  if (url.host !== from.host)
    return { refused: `at another host, ${originOf(url)}, and only ${originOf(from)} is asked` }
  const base = new URL(root).pathname.replace(/\/$/, '')
  const own = base + path
  // A proxy may serve the surface below a prefix that the service does not know.
  const below = url.pathname.startsWith(`${base}/`) ? url.pathname.slice(base.length) : null
  const place = below ?? (isEnd(own, url.pathname) ? path : null)
  if (place === null) return { refused: `outside ${originOf(from)}${base}` }
  const sized = [...url.searchParams.keys()].some((name) => SIZES.includes(name.toLowerCase()))
  const search = url.search === '' ? '?' : url.search
  const joint = search === '?' ? '' : '&'
  const size = sized || limit === 0 ? '' : `${joint}limit=${limit}`
  return { key: `${MARK}${place}${search}${size}` }
}

function isEnd(path: string, end: string): boolean {
  const plain = (text: string): string => text.replace(/\/$/, '')
  return end.length > 1 && plain(path).endsWith(plain(end))
}

/** Returns the URL of the relation `next` in a Link header; null when there is none (RFC 8288, section 3). */
export function nextLink(header: string | null): string | null {
  for (const [, url = '', params = ''] of (header ?? '').matchAll(LINK)) {
    const [, quoted, bare] = /;\s*rel\s*=\s*(?:"([^"]*)"|'?([^\s;,"']+))/i.exec(params) ?? []
    if ((quoted ?? bare ?? '').toLowerCase().split(/\s+/).includes('next')) return url
  }
  return null
}

const LINK = /<([^>]*)>((?:\s*;\s*[^\s=;,"]+(?:\s*=\s*(?:"[^"]*"|[^\s;,"]*))?)*)/g
