import type { IncomingMessage, ServerResponse } from 'node:http'
import type { Context } from './context.ts'
import { handleControl, isControl } from './control.ts'
import { type Outlet, deliver } from './deliver.ts'
import { distort } from './faults/corrupt-resource.ts'
import { deliverFaulty } from './faults/apply.ts'
import { logEntry, readIncoming } from './incoming.ts'
import { type NegotiatedAnswer, type Policy, finished, httpDate, negotiate, refusal } from './http/negotiate.ts'
import { route } from './feed/routes.ts'
import { handleSurface } from './service/call.ts'
import { wordedError } from './service/shapes/error.ts'

/** Answers one request: control, or log it, find what it asks for, and serve that, faults applied. */
export async function handle(context: Context, request: IncomingMessage, response: ServerResponse): Promise<void> {
  const incoming = readIncoming(request)
  const { method, path, query } = incoming
  response.sendDate = false
  response.setHeader('Date', httpDate(context.now()))
  if (isControl(path)) return handleControl(context, request, response, path, query)
  if (context.service?.surfaces.api.owns(path) === true) {
    return handleSurface(context, context.service.surfaces.api, request, response)
  }
  request.resume()
  const logged = logEntry(request, incoming, 'api')
  context.requests.add(logged)
  const outlet: Outlet = { response, head: method === 'HEAD', logged }
  if (method !== 'GET' && method !== 'HEAD') return deliver(outlet, notAllowed())
  const found = route(context.source, path, query, context.cveFeed)
  const resource = 'kind' in found ? found.kind : undefined
  const hasRange = request.headers.range !== undefined
  const fault = context.faults.take({ method, path, resource, hasRange })
  const answerWith = (policy: Policy): NegotiatedAnswer => {
    if (!('kind' in found)) return wordedError(context.shape.errors, found.status, found.message)
    const what = fault === undefined ? found.representation : distort(fault, found, context)
    return negotiate(method, request.headers, what, policy)
  }
  const { policy } = context
  if (fault === undefined) await deliver(outlet, finished(answerWith(policy), policy, request.headers))
  else await deliverFaulty(outlet, fault, answerWith, policy)
}

function notAllowed(): NegotiatedAnswer {
  const answer = refusal(405, 'only GET and HEAD')
  return { ...answer, headers: { ...answer.headers, Allow: 'GET, HEAD' } }
}
