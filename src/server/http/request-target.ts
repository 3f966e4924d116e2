import type { IncomingMessage } from 'node:http'
import { MirrorError } from '../../base/errors.ts'
import { LOCAL_KEYS } from '../../store/keys.ts'
import { percentDecoded } from '../../base/text.ts'

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

/** Reports whether a target, in origin form, is one for this request: a path, or `*` with OPTIONS (RFC 9112, section 3.2.4). */
export function isPath({ url = '', method }: Pick<IncomingMessage, 'url' | 'method'>): boolean {
  return url.startsWith('/') || (url === '*' && method === 'OPTIONS')
}

/** Returns the error for any other target. */
export function notPath(): MirrorError {
  return new MirrorError('bad_request', 'the request target is not a path: it begins with /')
}

/**
 * Splits and decodes a target. Ids contain spaces, `%`, `/` and any script, so the path is decoded as a whole, and
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
  return mark < 0 ? { path: before, query: '' } : { path: before.slice(0, mark), query: before.slice(mark + 1) }
}

/** Returns the path of a target, decoded where possible: for messages, not for lookups. */
export function readablePath(url: string): string {
  return percentDecoded(rawTarget(url).path)
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

/** Does the same; null for what is not. */
export function decodedPart(path: string): string | null {
  try {
    return decodePart(path)
  } catch {
    return null
  }
}

/**
 * The value of a query parameter; null when it is not given, or empty. Throws `bad_request` when it is given twice:
 * whichever were taken, the client might have meant the other.
 */
export function onlyValue(query: URLSearchParams, name: string): string | null {
  const [value, ...more] = query.getAll(name)
  if (more.length > 0) {
    const message = `the query parameter ${name} is given ${more.length + 1} times: give it once`
    throw new MirrorError('bad_request', message)
  }
  return value === undefined || value === '' ? null : value
}

/**
 * As `onlyValue`, for a parameter that selects: an empty value may be a variable that is not set, and is not taken for
 * everything. Throws `bad_request`.
 */
export function namedValue(query: URLSearchParams, name: string): string | null {
  const value = onlyValue(query, name)
  if (value !== null || !query.has(name)) return value
  throw new MirrorError('bad_request', `${name}= is empty: name what it selects, or omit it for everything`)
}

/** The rows that `limit` asks for, `max` at most; null when it is not given. Throws `bad_request`. */
export function readLimit(query: URLSearchParams, max: number): number | null {
  const text = onlyValue(query, 'limit')
  if (text === null) return null
  const limit = /^\d{1,9}$/.test(text) ? Number(text) : 0
  if (limit >= 1 && limit <= max) return limit
  const given = JSON.stringify(text.slice(0, 80))
  throw new MirrorError('bad_request', `limit must be a whole number from 1 to ${max}, not ${given}`)
}

/** Parameters whose values are safe to log: they only select a part of a list. */
const HARMLESS: ReadonlySet<string> = new Set(['limit', 'order', 'after'])
/** Form of a parameter name that may be logged; any other text may be a secret without its name. */
const NAME = /^[a-z][\w.-]{0,31}$/i
const HIDDEN = '********'
/** What a target that is a whole URL has before its host. */
const USER = /^([a-z][a-z\d+.-]*:\/\/)?[^/?#]*@/i

/**
 * A request target as it may be logged: the path, and of the query the names. A value may be a token, or the signature
 * of a link that opens.
 */
export function withoutValues(target: string): string {
  const [, path = '', query] = /^([^?#]*)(?:\?([^#]*))?/.exec(target) ?? []
  const text = query === undefined ? path : `${path}?${query.split('&').map(shown).join('&')}`
  return text.replace(USER, `$1${HIDDEN}@`).replace(LOCAL_KEYS, HIDDEN) // a client may put one where no credential belongs
}

function shown(parameter: string): string {
  const [, name = '', value] = /^([^=]*)=(.*)$/s.exec(parameter) ?? []
  if (value === undefined || !NAME.test(name)) return HIDDEN
  return HARMLESS.has(name) ? parameter : `${name}=${HIDDEN}`
}

/** The header field that names the query parameters which had no effect on the answer; nothing when there are none. */
export function ignoredField(unknown: readonly string[]): string[] {
  if (unknown.length === 0) return []
  const names = unknown.slice(0, 20).map((name) => encodeURIComponent(name.toWellFormed().slice(0, 80)))
  return ['X-Mirror-Ignored-Parameters', names.join(', ')]
}
