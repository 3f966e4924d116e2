import type { AnswerHeader, ComponentRef, InputParameter, JsonSchema, SecurityRequirement } from './openapi.ts'

const TEXT = { type: 'string' }

/** A place in a list, as an answer of this mirror names it; '' is the beginning. Any other text is refused. */
export const CURSOR = { type: 'string', format: 'cursor' }
const DATE_TIME = { type: 'string', format: 'date-time' }

/** Returns what purls look like, ending with a version of this form; each type has more rules. */
export function purlPattern(version: string): string {
  const qualifier = '[a-z][a-z0-9._-]*=[A-Za-z0-9._~:/%-]+'
  const rest = `([?]${qualifier}(&${qualifier})*)?(#[A-Za-z0-9._~/-]+)?`
  return `^pkg:[a-z][a-z0-9.-]*(/([A-Za-z0-9._~!:+-]|%[2-6][0-9A-F])+)+${version}${rest}$`
}

/** A purl of which the version is not looked at. */
export const PURL = { type: 'string', format: 'purl', pattern: purlPattern('(@[A-Za-z0-9._~+-]+)?'), maxLength: 1024 }

const header = (description: string, schema: JsonSchema = TEXT): AnswerHeader => ({
  description,
  schema,
})
const always = (description: string, schema: JsonSchema = TEXT): AnswerHeader => ({
  description,
  required: true,
  schema,
})

/** The header fields of answers, by the names under which answers refer to them. */
export const HEADERS = {
  ETag: always('Strong entity tag; another one for each content coding.', { type: 'string', pattern: '^".*"$' }),
  'Last-Modified': always('When the content changed last; it never goes backwards.'),
  'Cache-Control': always('How long a cache may use the answer without asking.'),
  'X-Accel-Expires': header('Makes nginx ask the mirror each time (`@1`).'),
  'X-Accel-Buffering': header('`no`: nginx passes each event on at once.'),
  Vary: header('Request headers on which the answer depends.'),
  'Content-Encoding': header('`gzip`, where the request accepts it.'),
  'X-Mirror-Snapshot': always('Id of the snapshot that the answer shows.'),
  'X-Mirror-As-Of': always("Upstream's date at which the answer was current.", DATE_TIME),
  'X-Mirror-Scope': header('The part of OSV that is mirrored, percent-encoded.'),
  'X-Mirror-Signature': header('`verified; …`, `failed; reason=…`, `none`.'),
  'X-Mirror-Incomplete': header('Why this or items of it may be missing here only.'),
  'X-Mirror-Stale': header('The limit that is exceeded, or why no age is known.'),
  'CDN-Cache-Control': header('How long a shared cache may keep it.'),
  'Cache-Groups': header('Names by which caches drop the answer.'),
  'Cache-Tag': header('The same, where `edge.tagHeader` is `Cache-Tag`.'),
  'Surrogate-Key': header('The same, where `edge.tagHeader` is `Surrogate-Key`.'),
  xkey: header('The same, where `edge.tagHeader` is `xkey`.'),
  'X-Mirror-Derived': header('Prefixes removed from the record.'),
  'X-Mirror-Ignored-Parameters': header('Query parameters that had no effect, percent-encoded.'),
  'Content-Location': header('Path of the record under its own id.'),
  'x-goog-hash': header('CRC-32C of the content, as `crc32c=BASE64`.'),
  'Accept-Ranges': header('`bytes`.'),
  'Content-Range': always('Which part of how many bytes this is.'),
  'Retry-After': always('Seconds to wait before the next attempt.', { type: 'integer' }),
  'WWW-Authenticate': always('How to send a credential.'),
  'X-RateLimit-Limit': always('Wrong keys that one client may send in a minute.', {
    type: 'integer',
  }),
  'X-RateLimit-Remaining': always('How many of them are left.', { type: 'integer' }),
  Allow: always('The methods of this path.'),
  Link: header('The next page (`rel="next"`).'),
  'X-Mirror-Instance': header('Id of the running daemon.'),
  'X-Content-Type-Options': header('`nosniff`.'),
  'Content-Security-Policy': header('Lets a browser run nothing.'),
  'Referrer-Policy': header('`no-referrer`.'),
  'Cross-Origin-Opener-Policy': header('`same-origin`.'),
  'Cross-Origin-Resource-Policy': header('`same-origin`.'),
  'WebHook-Allowed-Origin': header('The sender, where the settings name it.'),
  'WebHook-Allowed-Rate': header('`*`: any rate.'),
} as const satisfies Readonly<Record<string, AnswerHeader>>

/** Header fields that only some answers of a kind have, under the name of the component that says so. */
export const OPTIONAL_HEADERS = {
  ETagOfDocument: header('Entity tag, where the answer is the document itself.'),
  ChangedOfDocument: header('When it changed last, where the answer is the document itself.'),
  SnapshotIfKnown: header('Id of the served snapshot, where the path belongs to one.'),
  RetryIfTemporary: header('Seconds to wait; not sent with the error `upstream_too_large`.', {
    type: 'integer',
  }),
  AsOfIfKnown: header("Upstream's date of that snapshot.", DATE_TIME),
} as const satisfies Readonly<Record<string, AnswerHeader>>

/** The name of a declared header field. */
export type HeaderName = keyof typeof HEADERS

/** Header fields of every answer from the mirrored data. */
export const MIRRORED = [
  'X-Mirror-Snapshot',
  'X-Mirror-As-Of',
  'X-Mirror-Scope',
  'X-Mirror-Stale',
] as const satisfies readonly HeaderName[]

/** Header fields of public answers, for shared caches. */
export const EDGE = [
  'CDN-Cache-Control',
  'Cache-Groups',
  'Cache-Tag',
  'Surrogate-Key',
  'xkey',
] as const satisfies readonly HeaderName[]

/** Returns references to header fields, as an answer names them. */
export function headersOf(...names: readonly HeaderName[]): Readonly<Record<string, ComponentRef>> {
  return Object.fromEntries(names.map((name) => [name, ref('headers', name)]))
}

const condition = (name: string, description: string): InputParameter => ({
  name,
  in: 'header',
  description,
  schema: TEXT,
})

/** Request headers and query parameters that many operations take. */
export const PARAMETERS = {
  IfNoneMatch: condition('If-None-Match', 'Entity tags that the client has: 304 when one is current.'),
  IfModifiedSince: condition('If-Modified-Since', 'HTTP date: 304 when nothing changed since.'),
  IfMatch: condition('If-Match', 'Entity tags: 412 when none is current.'),
  IfUnmodifiedSince: condition('If-Unmodified-Since', 'HTTP date: 412 when the content changed since.'),
  Range: condition('Range', 'One range of bytes; several give the whole content.'),
  IfRange: condition('If-Range', 'Entity tag or HTTP date of the range.'),
} as const satisfies Readonly<Record<string, InputParameter>>

/** Returns references to common parameters. */
function parametersOf(...names: readonly (keyof typeof PARAMETERS)[]): ComponentRef[] {
  return names.map((name) => ref('parameters', name))
}

/** The request headers that every answer with validators takes. */
export const CONDITIONS = parametersOf('IfNoneMatch', 'IfModifiedSince', 'IfMatch', 'IfUnmodifiedSince')
/** The request headers of an answer that can be had in parts. */
export const RANGES = [...CONDITIONS, ...parametersOf('Range', 'IfRange')]

/** How a client shows that it may read. */
export const SECURITY_SCHEMES = {
  bearer: { type: 'http', scheme: 'bearer', description: 'A local key of this mirror.' },
  basic: {
    type: 'http',
    scheme: 'basic',
    description: 'A local key as user name, with an empty password.',
  },
  link: {
    type: 'apiKey',
    in: 'query',
    name: 'signature',
    description: 'A signed link as an answer gave it.',
  },
  delivery: {
    type: 'apiKey',
    in: 'header',
    name: 'webhook-signature',
    description: 'The signature of the service over id, timestamp and raw body.',
  },
} as const

/** Returns a reference to a component. */
export function ref(kind: 'headers' | 'parameters' | 'schemas' | 'responses', name: string): ComponentRef {
  return { $ref: `#/components/${kind}/${name}` }
}

/** An id in a path; `what` says of what. */
export function idParameter(name: string, what: string, example: string): InputParameter {
  return {
    name,
    in: 'path',
    required: true,
    description: `${what}; percent-encoded.`,
    schema: { type: 'string', minLength: 1 },
    example,
  }
}

/** The public part is open; with a key it is everything. */
export const KEY_OR_NONE: readonly SecurityRequirement[] = [{}, { bearer: [] }, { basic: [] }]
