import { isSamePath, linkMember, plainMember, relationOf } from '../list-names.ts'
import { isObject } from '../objects.ts'
import type { JsonPath } from '../slices.ts'

/** How a link is written: as a whole URL, from its path on, or as its query alone. */
export type LinkStyle = 'absolute' | 'path' | 'query'

/** URLs of the mirror for the links of a page, absolute. */
export interface PageUrls {
  /** Of the mirror, without a slash at its end. */
  readonly base: string
  readonly self: string
  readonly first: string
  readonly next: string | null
}

/** Returns how a link is written; null for a text that is none. */
export function styleOfLink(text: string): LinkStyle | null {
  if (/^https?:\/\/\S+$/i.test(text)) return 'absolute'
  if (/^\/[^/\s]\S*$/.test(text)) return 'path'
  return /^\?\S*$/.test(text) ? 'query' : null
}

/** Returns an absolute URL in a style. */
export function styledLink(url: string, style: LinkStyle): string {
  if (style === 'absolute') return url
  const { pathname, search } = new URL(url)
  return style === 'path' ? pathname + search : search || '?'
}

/** What a link leads to, by the name of its member or its relation. */
const ROLES: ReadonlyMap<string, keyof PageUrls | 'none'> = new Map([
  ['self', 'self'],
  ['current', 'self'],
  ['first', 'first'],
  ['start', 'first'],
  ['firstpage', 'first'],
  ['next', 'next'],
  ['nextpage', 'next'],
  ['last', 'none'],
  ['lastpage', 'none'],
  ['prev', 'none'],
  ['previous', 'none'],
  ['prevpage', 'none'],
  ['previouspage', 'none'],
])

/** What a path of the service begins with; the root of the service may have a path of its own before it. */
const SERVICE_PATH = /\/(?:v\d+(?:-[a-z]+)?|external|packages\/ecosystems)(?:\/.*)?$/

/**
 * Returns a page whose links outside the items lead to the mirror, each in the style that it had: to the page itself, the
 * first and the next one. Those to the last and to previous pages become null, since the mirror pages forward only.
 */
export function withLocalLinks(page: unknown, items: JsonPath, urls: PageUrls): unknown {
  const localOf = (value: unknown, name: string, path: JsonPath): unknown => {
    if (isSamePath(path, items) && path.length > 0) return value
    if (typeof value === 'string') return localText(value, name, urls)
    if (Array.isArray(value))
      return value.flatMap((one: unknown, at) => {
        const local = localOf(one, relationOf(one) ?? name, [...path, at])
        return local === null && one !== null ? [] : [local]
      })
    if (!isObject(value)) return value
    const link = linkMember(value)
    const members = Object.entries(value).map(([key, one]): [string, unknown] => [
      key,
      localOf(one, key === link ? name : key, [...path, key]),
    ])
    const local = Object.fromEntries(members)
    return link !== null && local[link] === null ? null : local
  }
  return localOf(page, '', [])
}

function localText(text: string, name: string, urls: PageUrls): string | null {
  const style = styleOfLink(text)
  if (style === null) return text
  const role = ROLES.get(plainMember(name))
  if (role === 'none') return null
  if (role !== undefined) {
    const url = urls[role]
    return url === null ? null : styledLink(url, style)
  }
  if (style !== 'absolute' || text.startsWith(`${urls.base}/`)) return text
  const { pathname = '', search = '' } = URL.parse(text) ?? {}
  const within = SERVICE_PATH.exec(pathname)?.[0]
  return within === undefined ? text : urls.base + within + search
}
