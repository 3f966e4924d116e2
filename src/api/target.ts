import { MirrorError } from '../errors.ts'

/** A request target in two halves: the path, and the query as it came (without `?`). */
export interface RequestTarget {
  readonly path: string
  readonly query: string
}

/** Origin form of a target: proxies and HTTP/1.0 clients may send a whole URL. */
export function originForm(url: string): string {
  const match = /^https?:\/\/[^/?#]*(.*)$/is.exec(url)
  if (match === null) return url
  const rest = match[1] ?? ''
  return rest.startsWith('/') ? rest : `/${rest}`
}

/**
 * Splits and decodes a target. Ids hold spaces, `%`, `/` and any script, so the path is decoded as a whole, and
 * dots and slashes keep their place. Throws `bad_request` for a path that is not percent-encoded UTF-8.
 */
export function readTarget(url: string): RequestTarget {
  const { path, query } = rawTarget(url)
  return { path: decodePart(path), query }
}

/** The path of a target as it came, and its query, without decoding either. */
export function rawTarget(url: string): RequestTarget {
  const [before = ''] = url.split('#', 1)
  const mark = before.indexOf('?')
  return mark < 0
    ? { path: before, query: '' }
    : { path: before.slice(0, mark), query: before.slice(mark + 1) }
}

/** The path of a target, decoded where it can be: for what is said about a request, not for what is looked up. */
export function readablePath(url: string): string {
  const { path } = rawTarget(url)
  try {
    return decodeURIComponent(path)
  } catch {
    return path
  }
}

/** Decodes a path, or a segment of one. Throws `bad_request` for what is not percent-encoded UTF-8. */
export function decodePart(path: string): string {
  try {
    return decodeURIComponent(path)
  } catch (error) {
    const message = 'the path is not valid percent-encoded UTF-8'
    throw new MirrorError('bad_request', message, { cause: error })
  }
}
