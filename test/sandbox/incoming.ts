import type { IncomingMessage } from 'node:http'
import type { LoggedRequest } from './request-log.ts'

/** A request's line: what it asks for, before its headers and body count. */
interface Incoming {
  method: string
  /** As sent, still percent-encoded, without the query. */
  path: string
  query: URLSearchParams
}

/** Takes a request's line apart. */
export function readIncoming({ method = 'GET', url = '/' }: IncomingMessage): Incoming {
  const mark = url.indexOf('?')
  if (mark < 0) return { method, path: url, query: new URLSearchParams() }
  return { method, path: url.slice(0, mark), query: new URLSearchParams(url.slice(mark + 1)) }
}

/** A log line for a request that came in at one of the sandbox's addresses; status and bytes follow. */
export function logEntry(
  { headers }: IncomingMessage,
  { method, path, query }: Incoming,
  host: LoggedRequest['host'],
): LoggedRequest {
  return { method, path, query: Object.fromEntries(query), headers, status: 0, bytes: 0, host }
}

/** The whole body as text; rejects when the client goes away. */
export async function readBody(request: IncomingMessage): Promise<string> {
  const parts: Buffer[] = []
  for await (const part of request) parts.push(part as Buffer) // no encoding is set
  return Buffer.concat(parts).toString()
}
