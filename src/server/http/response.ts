import type { IncomingMessage, ServerResponse } from 'node:http'
import { gzipSync } from 'node:zlib'
import { sha256Hex } from '../../base/digest.ts'
import { originFields, originNotAfter } from './origin.ts'
import { formatHttpDate } from '../../base/time.ts'
import { checkConditions } from './conditions.ts'
import { type Coding, type RequestHeaders, chooseCoding } from './request-headers.ts'
import type { SnapshotOrigin } from './origin.ts'
import { type Outgoing, sendProblem } from './problems.ts'

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
  /** Upstream's date of these bytes, Unix milliseconds, where its date of the snapshot does not confirm them. */
  readonly asOf?: number
}

/** A request and where its answer goes. */
export interface AnswerExchange {
  readonly request: Pick<IncomingMessage, 'method'>
  readonly response: Outgoing
  readonly requestHeaders: RequestHeaders
}

/** One request on its way to its answer. */
export interface Exchange {
  readonly request: IncomingMessage
  readonly response: ServerResponse
  readonly requestHeaders: RequestHeaders
}

/** Returns the ETag of one coding of a content: strong, another one for each coding; `tag` as `contentTag` returns it. */
export function entityTag(tag: string, coding: Coding | null): string {
  return coding === 'gzip' ? `"${tag}-gzip"` : `"${tag}"`
}

/** Returns 32 hex digits of a content's SHA-256, for its ETag. */
export function contentTag(content: Buffer): string {
  return sha256Hex(content).slice(0, 32)
}

/** Content of a JSON answer, and how it is labelled. */
export interface JsonContent {
  /** Without a coding. */
  readonly body: Buffer
  /** Returns the same as gzip; null: it is never compressed. Without it, the body is compressed for the request. */
  readonly gzip?: (() => Buffer) | null
  /** As `contentTag` returns it. */
  readonly tag: string
  /** Unix seconds. */
  readonly changed: number
  readonly origin: SnapshotOrigin
  /** Further header fields, flat. */
  readonly more?: readonly string[]
  /** Its media type; absent: `application/json`. */
  readonly type?: string
}

/** Answers a request with JSON in the coding that the client accepts: 200, 304 or 412, with validators. */
export function respond(exchange: AnswerExchange, content: JsonContent, heads: Heads): void {
  const { coding, body } = encode(exchange.requestHeaders, content)
  const answer = createAnswer(coding, body, content.tag, content.changed)
  sendAnswer(exchange, answer, content.origin, typed(heads, content.type), content.more)
}

/** Returns heads with another media type than that of most answers. */
export function typed(heads: Heads, type: string | undefined): Heads {
  if (type === undefined) return heads
  return (origin, coding) => {
    const head = heads(origin, coding)
    const value = head.full.indexOf('Content-Type') + 1
    return { ...head, full: head.full.with(value, type) }
  }
}

/** Content in one coding. */
interface Encoded {
  readonly coding: Coding
  readonly body: Buffer
}

/** Compression level of answers that are made for one request: speed counts. */
const LEVEL = 3

/** Returns content in the coding that the client accepts. */
export function encode(
  { acceptEncoding }: RequestHeaders,
  { body, gzip }: Pick<JsonContent, 'body' | 'gzip'>,
): Encoded {
  if (gzip === null || chooseCoding(acceptEncoding) === 'identity') return { coding: 'identity', body }
  return { coding: 'gzip', body: gzip?.() ?? gzipSync(body, { level: LEVEL }) }
}

/** A JSON answer for one request: no cache stores it, and it has no validators. */
interface UnstoredContent extends Encoded {
  /** Request headers that the answer depends on; null: none. */
  readonly vary: string | null
  readonly origin: SnapshotOrigin | null
  readonly more?: readonly string[]
  /** Its media type; absent: `application/json`. */
  readonly type?: string
}

/** Answers a request with JSON that must not be stored: 200. */
export function respondUnstored(
  { request, response }: Pick<AnswerExchange, 'request' | 'response'>,
  { body, coding, vary, origin, more = [], type = 'application/json' }: UnstoredContent,
): void {
  response.writeHead(200, [
    ...['Content-Type', type, 'Content-Length', String(body.length)],
    ...['Cache-Control', 'no-store', ...(vary === null ? [] : ['Vary', vary])],
    ...(origin === null ? [] : originFields(origin)),
    ...more,
    ...(coding === 'gzip' ? ['Content-Encoding', 'gzip'] : []),
  ])
  if (request.method === 'HEAD') response.end()
  else response.end(body)
}

/** Returns a JSON answer in one coding; `tag`: 32 hex digits of the content's SHA-256. */
export function createAnswer(coding: Coding, body: Buffer, tag: string, changed: number): JsonResponse {
  return {
    coding,
    body,
    length: String(body.length),
    etag: entityTag(tag, coding),
    lastModified: formatHttpDate(changed),
    changed,
  }
}

/** Returns an answer with the Last-Modified that it has in this snapshot. */
export function dated(answer: JsonResponse, { notBefore = 0 }: SnapshotOrigin): JsonResponse {
  if (answer.changed >= notBefore) return answer
  return { ...answer, changed: notBefore, lastModified: formatHttpDate(notBefore) }
}

/** Sends an answer: 200, 304 or 412. Head and body leave in a single write. `more`: further header fields, flat. */
export function sendAnswer(
  { request, response, requestHeaders }: AnswerExchange,
  undated: JsonResponse,
  snapshot: SnapshotOrigin,
  heads: Heads,
  more: readonly string[] = [],
): void {
  const answer = dated(undated, snapshot)
  const origin = originNotAfter(snapshot, answer.asOf)
  const result = checkConditions(requestHeaders, { ...answer, servedSince: snapshot.servedSince })
  if (result === 'failed') return sendFailed(request, response, origin)
  const { etag, lastModified, length } = answer
  const { validated, full } = heads(origin, answer.coding)
  if (result === 'unchanged') {
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
export function answerText({ etag, lastModified, length }: JsonResponse, shared: ResponseHead): string {
  return `HTTP/1.1 200 OK\r\nETag: ${etag}\r\nLast-Modified: ${lastModified}\r\nContent-Length: ${length}\r\n${shared.text}`
}

/** 412: what the client made its condition is no longer so. */
export function sendFailed(request: AnswerExchange['request'], response: Outgoing, origin: SnapshotOrigin): void {
  const message = 'the mirrored document is not the one that If-Match or If-Unmodified-Since names'
  sendProblem(request, response, { status: 412, error: 'precondition_failed', message, origin })
}

/** The header fields that all JSON answers of one origin and coding share. */
interface ResponseHead {
  /** Names and values, one flat list: what a 304 repeats. */
  readonly validated: readonly string[]
  /** The same and what only goes with a body. */
  readonly full: readonly string[]
  /** `full` as it goes over the wire. */
  readonly text: string
}

/**
 * Makes each shared head once: an origin is replaced whenever anything in it changes. `edgeFields`: more header fields of
 * its answers, for shared caches.
 */
export function createHeads(
  cacheControl: string,
  edgeFields: (origin: SnapshotOrigin) => readonly string[] = () => [],
): (origin: SnapshotOrigin, coding: Coding) => ResponseHead {
  const made = new WeakMap<SnapshotOrigin, Readonly<Record<Coding, ResponseHead>>>()
  return (origin, coding) => {
    let heads = made.get(origin)
    if (heads === undefined) {
      const identity = makeHead(origin, cacheControl, edgeFields(origin), [])
      const gzip = makeHead(origin, cacheControl, edgeFields(origin), ['Content-Encoding', 'gzip'])
      heads = { identity, gzip }
      made.set(origin, heads)
    }
    return heads[coding]
  }
}

export type Heads = ReturnType<typeof createHeads>

/**
 * Cache-Control of public answers: a cache asks each time, which costs an empty 304. One that kept answers could pair a new
 * index with an old record; a scanner then stores the old record under the new date and never asks again.
 */
export const PUBLIC_CACHING = 'public, max-age=0, must-revalidate'

/** Cache-Control of answers that need a key: shared caches never store them. */
export const PRIVATE_CACHING = 'private, max-age=0, must-revalidate'

/**
 * Header fields that limit how long caches may store an answer. nginx stores nothing with `max-age=0`, and then removes
 * conditions and ranges from the requests it forwards, so each gets a full response. With its own field it stores the answer
 * as one that is already stale (`@1` is a second of 1970): it revalidates each time, and creates 304 and 206 by itself. The
 * field precedes Cache-Control, because nginx up to 1.23 uses the first.
 */
export function cacheFields(cacheControl: string): string[] {
  const nginx = cacheControl === PUBLIC_CACHING ? ['X-Accel-Expires', '@1'] : []
  return [...nginx, 'Cache-Control', cacheControl]
}

function makeHead(
  origin: SnapshotOrigin,
  cacheControl: string,
  edge: readonly string[],
  encoding: readonly string[],
): ResponseHead {
  const validated = [...cacheFields(cacheControl), 'Vary', 'Accept-Encoding', ...originFields(origin), ...edge]
  const full = [...validated, 'Content-Type', 'application/json', ...encoding]
  return { validated, full, text: headText(full) }
}

/** `Name: value` lines of a flat list. */
function headText(fields: readonly string[]): string {
  let text = ''
  for (let at = 0; at + 1 < fields.length; at += 2) text += `${fields[at]}: ${fields[at + 1]}\r\n`
  return text
}
