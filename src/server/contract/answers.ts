import type { ProblemForm } from '../http/problems.ts'
import { HEADERS, type HeaderName, MIRRORED, OPTIONAL_HEADERS, headersOf, ref } from './components.ts'
import type { ComponentRef, DeclaredAnswer, DeclaredAnswers, JsonSchema } from './openapi.ts'
import { schemaOf } from './schema-ref.ts'

/** The forms of problems: those of the surfaces, and that of osv.dev's query API. */
type ContractForm = ProblemForm | 'gateway'

/** Statuses of problems: what each means, and its own header fields. */
const PROBLEMS = {
  400: ['The request is malformed, or a parameter is not valid.', []],
  401: ['No local key, or one that is not valid here.', ['WWW-Authenticate']],
  403: ['Refused by the service, or the link or signature is not valid.', []],
  404: ['There is no such thing on this mirror; `error` and `message` give the reason.', ['X-Mirror-Incomplete']],
  405: ['The method is not allowed here.', ['Allow']],
  408: ['The body did not come in time.', []],
  412: ['The content is not the one that If-Match or If-Unmodified-Since names.', []],
  413: ['The body is too large.', []],
  415: ['The body has a Content-Encoding.', []],
  416: ['The range is outside of the content.', ['Content-Range', 'Accept-Ranges']],
  429: ['Too many wrong keys from this client.', ['Retry-After', 'X-RateLimit-Limit', 'X-RateLimit-Remaining']],
  500: ['The mirror failed to answer; its log has the reason.', []],
  501: ['Only the service itself can answer this: no item has the field of this parameter.', []],
  503: ['Not mirrored yet, or the data cannot be read now.', ['Retry-After']],
} as const satisfies Readonly<Record<number, readonly [string, readonly HeaderName[]]>>

/** A status that a problem can have. */
type ProblemStatus = keyof typeof PROBLEMS

const SCHEMA_OF = {
  message: 'Problem',
  identity: 'IdentityProblem',
  gateway: 'GatewayProblem',
} as const satisfies Readonly<Record<ContractForm, string>>

/** Every answer that is a problem, by the name of its component, such as `Problem404`. */
export const PROBLEM_RESPONSES: Readonly<Record<string, DeclaredAnswer>> = Object.fromEntries(
  Object.values(SCHEMA_OF).flatMap((schema) =>
    Object.entries(PROBLEMS).map(([status, [description, headers]]) => [
      `${schema}${status}`,
      declared(description, headersOf(...headers), schemaOf(schema)),
    ]),
  ),
)

function declared(
  description: string,
  headers: Readonly<Record<string, ComponentRef>>,
  schema: ComponentRef,
): DeclaredAnswer {
  return {
    description,
    headers: {
      ...headersOf('Cache-Control'),
      ...headers,
      ...headersOf(...MIRRORED),
      'X-Mirror-Snapshot': ref('headers', 'SnapshotIfKnown'),
      'X-Mirror-As-Of': ref('headers', 'AsOfIfKnown'),
    },
    content: { 'application/json': { schema } },
  }
}

/** 503 of a feed with filters: beside what is temporary, that it has too many entries to be filtered (`upstream_too_large`). */
export const UNFILTERED: DeclaredAnswers = {
  503: declared(
    `${PROBLEMS[503][0]} Or the feed is too large to be filtered (\`upstream_too_large\`).`,
    { 'Retry-After': ref('headers', 'RetryIfTemporary') },
    schemaOf('Problem'),
  ),
}

/** Every header component, those that are not always sent included. */
export const HEADER_COMPONENTS = { ...HEADERS, ...OPTIONAL_HEADERS }

/** Returns problems in a form, by status. */
export function problems(form: ContractForm, ...statuses: readonly ProblemStatus[]): DeclaredAnswers {
  const named = statuses.map((status): [string, ComponentRef] => [
    String(status),
    ref('responses', `${SCHEMA_OF[form]}${status}`),
  ])
  return Object.fromEntries(named)
}

const VALIDATED = ['ETag', 'Last-Modified', 'Cache-Control', 'X-Accel-Expires', 'Vary'] as const

/** An answer of mirrored content: its body, and the header fields that it has beyond the usual ones. */
interface Mirrored {
  readonly description: string
  readonly type?: string
  readonly schema?: JsonSchema
  readonly more?: readonly HeaderName[]
}

/** Returns 200, 304 and 412 of content with validators. */
export function mirrored(content: Mirrored): DeclaredAnswers {
  const { description, type = 'application/json', schema = schemaOf('ServiceJson'), more = [] } = content
  const names = [...VALIDATED, ...MIRRORED, ...more]
  return {
    200: {
      description,
      headers: headersOf(...names, 'Content-Encoding'),
      content: { [type]: { schema } },
    },
    304: { description: 'The client has the current content.', headers: headersOf(...names) },
    ...problems('message', 412),
  }
}

/** Returns the same of a file that can be had in parts: also 206 and 416. */
export function mirroredFile(content: Mirrored): DeclaredAnswers {
  const { type = 'application/zip', schema = BYTES, more = [] } = content
  const own = { ...content, type, schema, more: ['Accept-Ranges', ...more] as const }
  return {
    ...mirrored(own),
    206: {
      description: 'The part that Range asks for.',
      headers: headersOf(...VALIDATED, ...MIRRORED, 'Accept-Ranges', ...more, 'Content-Range'),
      content: { [type]: { schema } },
    },
    ...problems('message', 416),
  }
}

const BYTES: JsonSchema = { type: 'string', contentMediaType: 'application/octet-stream' }

/** Returns an answer that no cache stores. */
export function uncached(description: string, schema: JsonSchema, more: readonly HeaderName[] = []): DeclaredAnswer {
  return {
    description,
    headers: headersOf('Cache-Control', ...more),
    content: { 'application/json': { schema } },
  }
}

/** Header fields of every page for people. */
const PAGE_HEADERS = [
  ...(['Cache-Control', 'Vary', 'Content-Security-Policy', 'X-Content-Type-Options'] as const),
  ...(['Referrer-Policy', 'Cross-Origin-Opener-Policy', 'Cross-Origin-Resource-Policy'] as const),
] as const

/** An answer that is a page. */
export function pageAnswer(description: string, more: readonly HeaderName[] = []): DeclaredAnswer {
  const headers = headersOf(...PAGE_HEADERS, ...more)
  return { description, headers, content: { 'text/html': { schema: { type: 'string' } } } }
}
