/** What a request asks for beyond its path: the header fields that change an answer. */
export interface RequestHeaders {
  acceptEncoding: string | undefined
  ifMatch: string | undefined
  ifNoneMatch: string | undefined
  ifModifiedSince: string | undefined
  ifUnmodifiedSince: string | undefined
  ifRange: string | undefined
  range: string | undefined
}

const FIELDS: Readonly<Partial<Record<string, keyof RequestHeaders>>> = {
  'accept-encoding': 'acceptEncoding',
  'if-match': 'ifMatch',
  'if-none-match': 'ifNoneMatch',
  'if-modified-since': 'ifModifiedSince',
  'if-unmodified-since': 'ifUnmodifiedSince',
  'if-range': 'ifRange',
  range: 'range',
}
const LENGTHS = new Set(Object.keys(FIELDS).map((name) => name.length))

/**
 * Reads the fields from a request's raw headers (name, value, name, value, …); a repeated field is joined
 * with a comma. Going through the raw list spares building an object of all headers for every request.
 */
export function readRequestHeaders(rawHeaders: readonly string[]): RequestHeaders {
  const wishes: RequestHeaders = {
    acceptEncoding: undefined,
    ifMatch: undefined,
    ifNoneMatch: undefined,
    ifModifiedSince: undefined,
    ifUnmodifiedSince: undefined,
    ifRange: undefined,
    range: undefined,
  }
  for (let at = 0; at + 1 < rawHeaders.length; at += 2) {
    const name = rawHeaders[at] ?? ''
    if (!LENGTHS.has(name.length)) continue
    const field = FIELDS[name.toLowerCase()]
    if (field === undefined) continue
    const before = wishes[field]
    const value = rawHeaders[at + 1] ?? ''
    wishes[field] = before === undefined ? value : `${before}, ${value}`
  }
  return wishes
}
