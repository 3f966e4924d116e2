import type { ServerResponse, IncomingMessage } from 'node:http'
import { promisify } from 'node:util'
import { gzip } from 'node:zlib'
import { shareFor } from '../../../base/connections/responses.ts'
import { originHeaders, partFields } from '../../../server/http/origin.ts'
import { toIsoOrNull, parseDate } from '../../../base/time.ts'
import type { SearchResult, ResultPage } from '../records/search.ts'
import { chooseCoding } from '../../../server/http/request-headers.ts'
import { type Exchange, respondUnstored } from '../../../server/http/response.ts'
import type { SnapshotOrigin } from '../../../server/http/origin.ts'
import { derivedHead } from './generation.ts'
import { type Problem, retryHeaders } from '../../../server/http/problems.ts'

const compress = promisify(gzip)

/** Answers below this size gain nothing by being compressed. */
const WORTH_BYTES = 1024
/** These answers are made for one client: speed counts, not the last tenth. */
const LEVEL = 1

/** An answer of the query API. */
export interface OsvAnswer {
  readonly body: Buffer
  /** Vendor prefixes that were taken off records in it. */
  readonly prefixes: readonly string[]
}

/** `{"vulns": […], "next_page_token": …}` with the records' own bytes, as protobuf's JSON leaves out what is empty. */
export function vulnerabilityList({ found, next }: ResultPage): OsvAnswer {
  const parts: (Buffer | string)[] = []
  for (const { content } of found) parts.push(parts.length === 0 ? '"vulns":[' : ',', content)
  if (parts.length > 0) parts.push(']')
  if (next !== '') parts.push(`${parts.length > 0 ? ',' : ''}"next_page_token":${JSON.stringify(next)}`)
  const bytes = ['{', ...parts, '}'].map((part) => (typeof part === 'string' ? Buffer.from(part) : part))
  const body = Buffer.concat(bytes)
  return { body, prefixes: prefixesOf(found) }
}

/** A page of a batch: its records without their content. */
export interface BriefPage {
  readonly found: readonly Omit<SearchResult, 'content' | 'parsed'>[]
  readonly next: string
}

/** `{"results": [{"vulns": [{"id", "modified"}], "next_page_token"}, …]}`, one result a query, in their order. */
export function batchList(pages: readonly BriefPage[]): OsvAnswer {
  const results = pages.map(({ found, next }) => ({
    ...(found.length > 0 && { vulns: found.map(brief) }),
    ...(next !== '' && { next_page_token: next }),
  }))
  const body = Buffer.from(JSON.stringify(results.length === 0 ? {} : { results }))
  return { body, prefixes: prefixesOf(pages.flatMap(({ found }) => found)) }
}

function brief({ id, modified }: Pick<SearchResult, 'id' | 'modified'>): object {
  const stamp = modified === null ? null : timestamp(modified)
  return stamp === null ? { id } : { id, modified: stamp }
}

/** Returns a stamp as protobuf parses it (one invalid stamp fails the whole batch); null when it is not a time. */
function timestamp(modified: string): string | null {
  if (/^\d{4}-\d\d-\d\dT\d\d:\d\d:\d\d(?:\.\d{1,9})?Z$/.test(modified)) return modified
  return toIsoOrNull(parseDate(modified))
}

function prefixesOf(found: readonly Pick<SearchResult, 'prefixes'>[]): string[] {
  return [...new Set(found.flatMap(({ prefixes }) => prefixes))].sort()
}

/** Sends an answer to a POST: never cached, compressed where the client accepts it and it saves bytes. */
export async function sendOsvAnswer(
  exchange: Exchange,
  { body: plain, prefixes }: OsvAnswer,
  origin: SnapshotOrigin,
): Promise<void> {
  const accepted = chooseCoding(exchange.requestHeaders.acceptEncoding)
  const coding = plain.length >= WORTH_BYTES ? accepted : 'identity'
  const body = coding === 'gzip' ? await compress(plain, { level: LEVEL }) : plain
  if (exchange.response.destroyed) return
  shareFor(exchange.response).release() // the answer counts from here on
  const more = [...derivedHead({ prefixes }), ...partFields(origin)]
  respondUnstored(exchange, { body, coding, vary: 'Accept-Encoding', origin, more })
}

/** Codes of gRPC, which the errors of osv.dev's API carry, by HTTP status (google.rpc.Code). */
const CODES: Readonly<Record<number, number>> = {
  400: 3, // INVALID_ARGUMENT
  404: 5, // NOT_FOUND
  405: 12, // UNIMPLEMENTED
  408: 4, // DEADLINE_EXCEEDED
  413: 8, // RESOURCE_EXHAUSTED
  415: 3,
  503: 14, // UNAVAILABLE
}
const INTERNAL = 13

/** Statuses after which the rest of a request's body is not read: the connection ends with the answer. */
const UNREAD: ReadonlySet<number> = new Set([405, 408, 413, 415])

/** Sends an error as osv.dev's gateway does: `{"code", "message"}`. A HEAD gets its headers. */
export function sendStatus(
  request: IncomingMessage,
  response: ServerResponse,
  { status, message, headers, origin }: Omit<Problem, 'error'>,
): void {
  const body = JSON.stringify({ code: CODES[status] ?? INTERNAL, message })
  response.writeHead(status, {
    'Content-Type': 'application/json',
    'Content-Length': Buffer.byteLength(body),
    'Cache-Control': 'no-store',
    ...(UNREAD.has(status) && { Connection: 'close' }),
    ...retryHeaders(status),
    ...headers,
    ...originHeaders(origin),
  })
  if (request.method === 'HEAD') response.end()
  else response.end(body)
}
