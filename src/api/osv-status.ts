import type { IncomingMessage, ServerResponse } from 'node:http'
import type { Problem } from './problem.ts'

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
    ...headers,
    ...(origin && { 'X-Mirror-Snapshot': origin.snapshot, 'X-Mirror-As-Of': origin.asOf }),
  })
  if (request.method === 'HEAD') response.end()
  else response.end(body)
}
