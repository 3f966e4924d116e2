import type { IncomingMessage, ServerResponse } from 'node:http'
import { gzipSync } from 'node:zlib'
import type { NodeAnswer } from '../app.ts'
import { checkConditions } from '../http/conditions.ts'
import { type Coding, chooseCoding, readRequestHeaders } from '../http/request-headers.ts'
import { PUBLIC_CACHING, cacheFields, contentTag, entityTag } from '../http/response.ts'
import { pageAnswer, problems } from '../contract/answers.ts'
import { headersOf, ref } from '../contract/components.ts'
import type { DeclaredAnswer, PathOperation } from '../contract/openapi.ts'

/** A document about the program in both codings, with its tag. */
export interface ServedDocument {
  readonly tag: string
  readonly type: string
  readonly bodies: Readonly<Record<Coding, Buffer>>
  /** More header fields. */
  readonly headers: Readonly<Record<string, string>>
}

/** Makes a document of its bytes and its media type. */
export function makeServedDocument(
  identity: Buffer,
  type: string,
  headers: ServedDocument['headers'] = {},
): ServedDocument {
  const tag = contentTag(identity)
  return { tag, type, bodies: { identity, gzip: gzipSync(identity, { level: 9 }) }, headers }
}

/** Returns what answers with the current document: it needs no key and is revalidated by its tag. What `current` throws is the answer. */
export function answerWith(
  current: (request: IncomingMessage) => ServedDocument | Promise<ServedDocument>,
): NodeAnswer {
  return async (request, response) => send(request, response, await current(request))
}

function send(
  request: IncomingMessage,
  response: ServerResponse,
  { tag, type, bodies, headers }: ServedDocument,
): void {
  const { acceptEncoding, ifNoneMatch } = readRequestHeaders(request.rawHeaders)
  const coding = chooseCoding(acceptEncoding)
  const etag = entityTag(tag, coding)
  const head = ['ETag', etag, ...cacheFields(PUBLIC_CACHING), 'Vary', 'Accept-Encoding']
  head.push(...Object.entries(headers).flat())
  const asked = { ...NO_CONDITIONS, ifNoneMatch }
  if (checkConditions(asked, { etag, changed: 0 }) === 'unchanged') {
    response.writeHead(304, head).end()
    return
  }
  const body = bodies[coding]
  head.push('Content-Type', type, 'Content-Length', String(body.length))
  if (coding === 'gzip') head.push('Content-Encoding', 'gzip')
  response.writeHead(200, head)
  if (request.method === 'HEAD') response.end()
  else response.end(body)
}

/** The document has no date, so only its tag is compared. */
const NO_CONDITIONS = readRequestHeaders([])

const OF_CONTRACT = ['ETag', 'Cache-Control', 'X-Accel-Expires', 'Vary'] as const

/** Returns the contract of a document about the program; those that are pages have the header fields of pages. */
export function documentContract(
  about: Pick<PathOperation, 'summary' | 'description'>,
  description: string,
  content: NonNullable<DeclaredAnswer['content']>,
  ...more: 404[]
): PathOperation {
  const page = 'text/html' in content ? pageAnswer('').headers : {}
  const headers = { ...page, ...headersOf(...OF_CONTRACT) }
  return {
    ...about,
    tags: ['Mirror'],
    parameters: [ref('parameters', 'IfNoneMatch')],
    responses: {
      200: { description, headers: { ...headers, ...headersOf('Content-Encoding') }, content },
      304: { description: 'The client has the current content.', headers },
      ...problems('message', 400, ...more, 500),
    },
  }
}
