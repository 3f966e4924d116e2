import type { IncomingMessage, ServerResponse } from 'node:http'
import { gzipSync } from 'node:zlib'
import { checkConditions } from '../http/conditions.ts'
import { type Failures, methodNotAllowed, sendProblem } from '../http/problems.ts'
import { type Coding, chooseCoding, readRequestHeaders } from '../http/request-headers.ts'
import { rawTarget } from '../http/request-target.ts'
import { PUBLIC_CACHING, cacheFields, contentTag, entityTag } from '../http/response.ts'

/** A document about the program in both codings, with its tag. */
export interface ServedDocument {
  readonly tag: string
  readonly type: string
  readonly bodies: Readonly<Record<Coding, Buffer>>
  /** More header fields. */
  readonly headers: Readonly<Record<string, string>>
}

/** A path of the mirror's own that answers with a document. */
interface DocumentPage {
  /** Answers its path; false for a request for another path. */
  answer(request: IncomingMessage, response: ServerResponse): boolean
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

interface DocumentPageOptions {
  readonly path: string
  /** Returns the current document; what it throws is the answer. */
  readonly current: (request: IncomingMessage) => ServedDocument | Promise<ServedDocument>
  readonly failures: Failures
}

/** Creates a page that needs no key and is revalidated by its tag. */
export function createDocumentPage(options: DocumentPageOptions): DocumentPage {
  const { path, current, failures } = options
  return {
    answer(request, response) {
      if (rawTarget(request.url ?? '').path !== path) return false
      const { method = '' } = request
      const isRead = method === 'GET' || method === 'HEAD'
      if (!isRead) sendProblem(request, response, methodNotAllowed(method))
      else
        void Promise.resolve()
          .then(() => current(request))
          .then((document) => send(request, response, document))
          .catch((error: unknown) => failures.answer(error, request, response))
      return true
    },
  }
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
