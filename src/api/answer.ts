import type { IncomingMessage, ServerResponse } from 'node:http'
import { checkConditions, formatHttpDate } from './conditional.ts'
import type { Heads, ResponseHead } from './heads.ts'
import type { Coding } from './negotiate.ts'
import type { SnapshotOrigin } from './origin.ts'
import { type Outgoing, sendProblem } from './problem.ts'
import type { RequestHeaders } from './wishes.ts'

/** A JSON answer in one coding, ready to send: bytes and header texts. */
export interface JsonResponse {
  readonly coding: Coding
  readonly body: Buffer
  readonly length: string
  /** Strong, derived from the content, another one for each coding. */
  readonly etag: string
  readonly lastModified: string
  /** The same in unix seconds. */
  readonly changed: number
}

/** A request and where its answer goes. */
export interface AnswerExchange {
  readonly request: Pick<IncomingMessage, 'method'>
  readonly response: Outgoing
  readonly wishes: RequestHeaders
}

/** One request on its way to its answer. */
export interface Exchange {
  readonly request: IncomingMessage
  readonly response: ServerResponse
  readonly wishes: RequestHeaders
}

/** `tag`: 32 hex digits of the content's SHA-256. */
export function createAnswer(
  coding: Coding,
  body: Buffer,
  tag: string,
  changed: number,
): JsonResponse {
  return {
    coding,
    body,
    length: String(body.length),
    etag: coding === 'gzip' ? `"${tag}-gzip"` : `"${tag}"`,
    lastModified: formatHttpDate(changed),
    changed,
  }
}

/** Sends an answer: 200, 304 or 412. Head and body leave in a single write. `more`: further header fields, flat. */
export function sendAnswer(
  { request, response, wishes }: AnswerExchange,
  answer: JsonResponse,
  origin: SnapshotOrigin,
  heads: Heads,
  more: readonly string[] = [],
): void {
  const verdict = checkConditions(wishes, answer)
  if (verdict === 'failed') return sendFailed(request, response, origin)
  const { etag, lastModified, length } = answer
  const { validated, full } = heads(origin, answer.coding)
  if (verdict === 'unchanged') {
    const own = ['ETag', etag, 'Last-Modified', lastModified]
    response.writeHead(304, [...own, ...validated, ...more]).end()
    return
  }
  const own = ['ETag', etag, 'Last-Modified', lastModified, 'Content-Length', length]
  response.writeHead(200, [...own, ...full, ...more])
  if (request.method === 'HEAD') response.end()
  else response.end(answer.body)
}

/** The head of the same 200 as text, up to what only the connection knows. */
export function answerText(
  { etag, lastModified, length }: JsonResponse,
  shared: ResponseHead,
): string {
  return `HTTP/1.1 200 OK\r\nETag: ${etag}\r\nLast-Modified: ${lastModified}\r\nContent-Length: ${length}\r\n${shared.text}`
}

/** 412: what the client made its condition is no longer so. */
export function sendFailed(
  request: AnswerExchange['request'],
  response: Outgoing,
  origin: SnapshotOrigin,
): void {
  const message = 'the mirrored document is not the one that If-Match or If-Unmodified-Since names'
  sendProblem(request, response, { status: 412, error: 'precondition_failed', message, origin })
}
