import type { IncomingMessage, ServerResponse } from 'node:http'
import { handleControl, isControl } from './control.ts'
import { type Outlet, deliver } from './deliver.ts'
import { distort } from './distort.ts'
import type { createFaults } from './faults.ts'
import { deliverFaulty } from './faulty.ts'
import type { Feed, FeedSource } from './feed.ts'
import { type Answer, type Policy, httpDate, negotiate } from './negotiate.ts'
import { refusal } from './refusal.ts'
import type { LoggedRequest, createRequestLog } from './request-log.ts'
import { route } from './routes.ts'

/** Parts that a request handler works with. */
export interface Context {
  feed: Feed
  source: FeedSource
  faults: ReturnType<typeof createFaults>
  requests: ReturnType<typeof createRequestLog>
  policy: Policy
  cveFeed: boolean
  now: () => number
}

/** Answers one request: control, or log it, find what it asks for, and serve that, faults applied. */
export async function handle(
  context: Context,
  request: IncomingMessage,
  response: ServerResponse,
): Promise<void> {
  const { path, query } = splitUrl(request.url ?? '/')
  response.sendDate = false
  response.setHeader('Date', httpDate(context.now()))
  if (isControl(path)) return handleControl(context, request, response, path, query)
  request.resume()
  const method = request.method ?? 'GET'
  const logged = logEntry(request, method, path, query)
  context.requests.add(logged)
  const outlet: Outlet = { response, head: method === 'HEAD', logged }
  if (method !== 'GET' && method !== 'HEAD') return deliver(outlet, notAllowed())
  const found = route(context.source, path, query, context.cveFeed)
  const resource = 'kind' in found ? found.kind : undefined
  const hasRange = request.headers.range !== undefined
  const fault = context.faults.take({ method, path, resource, hasRange })
  const answerWith = (policy: Policy): Answer => {
    if (!('kind' in found)) return refusal(found.status, found.message)
    const what = fault === undefined ? found.representation : distort(fault, found, context)
    return negotiate(method, request.headers, what, policy)
  }
  if (fault === undefined) await deliver(outlet, answerWith(context.policy))
  else await deliverFaulty(outlet, fault, answerWith, context.policy)
}

function logEntry(
  request: IncomingMessage,
  method: string,
  path: string,
  query: URLSearchParams,
): LoggedRequest {
  const { headers } = request
  return { method, path, query: Object.fromEntries(query), headers, status: 0, bytes: 0 }
}

function splitUrl(url: string): { path: string; query: URLSearchParams } {
  const mark = url.indexOf('?')
  if (mark < 0) return { path: url, query: new URLSearchParams() }
  return { path: url.slice(0, mark), query: new URLSearchParams(url.slice(mark + 1)) }
}

function notAllowed(): Answer {
  const answer = refusal(405, 'only GET and HEAD')
  return { ...answer, headers: { ...answer.headers, Allow: 'GET, HEAD' } }
}
