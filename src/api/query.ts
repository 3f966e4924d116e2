import { MirrorError } from '../errors.ts'

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

/** Parameters whose values say nothing but how much of a list was asked for. */
const HARMLESS: ReadonlySet<string> = new Set(['limit', 'order', 'after'])
/** What a name looks like that somebody thought of; anything else may be a secret that lost its name. */
const NAME = /^[a-z][\w.-]{0,31}$/i
const HIDDEN = '********'

/**
 * A request target as it may be logged: the path, and of the query the names. A value may be a token, or the signature
 * of a link that opens.
 */
export function withoutValues(target: string): string {
  const [, path = '', query] = /^([^?#]*)(?:\?([^#]*))?/.exec(target) ?? []
  return query === undefined ? path : `${path}?${query.split('&').map(shown).join('&')}`
}

function shown(parameter: string): string {
  const [, name = '', value] = /^([^=]*)=(.*)$/s.exec(parameter) ?? []
  if (value === undefined || !NAME.test(name)) return HIDDEN
  return HARMLESS.has(name) ? parameter : `${name}=${HIDDEN}`
}

/** The header field that names the query parameters which had no effect on the answer; nothing when there are none. */
export function ignoredField(unknown: readonly string[]): string[] {
  if (unknown.length === 0) return []
  const names = unknown
    .slice(0, 20)
    .map((name) => encodeURIComponent(name.toWellFormed().slice(0, 80)))
  return ['X-Mirror-Ignored-Parameters', names.join(', ')]
}
