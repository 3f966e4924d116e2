import { MirrorError } from '../errors.ts'

/** A request target in two halves: the decoded path, and the query as it came (without `?`). */
export interface Target {
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
export function readTarget(url: string): Target {
  const mark = url.search(/[?#]/)
  const path = mark < 0 ? url : url.slice(0, mark)
  const query = mark < 0 || url[mark] === '#' ? '' : url.slice(mark + 1).replace(/#.*$/s, '')
  return { path: decodePath(path), query }
}

function decodePath(path: string): string {
  try {
    return decodeURIComponent(path)
  } catch (error) {
    const message = 'the path is not valid percent-encoded UTF-8'
    throw new MirrorError('bad_request', message, { cause: error })
  }
}
