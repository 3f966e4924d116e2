import type { IncomingMessage, ServerResponse } from 'node:http'
import { type NegotiatedAnswer, type Policy, finished, httpDate } from '../http/negotiate.ts'
import { type Outlet, deliver } from '../deliver.ts'
import { deliverFaulty } from '../faults/apply.ts'
import type { Context } from '../context.ts'
import { logEntry, readBody, readIncoming } from '../incoming.ts'
import type { ServiceRequest } from './request.ts'
import { cursorAsked } from './shapes/list.ts'
import type { Surface } from './surface.ts'

/** Answers one request at a surface, faults applied. A fault that replaces the answer prevents the deed. */
export async function handleSurface(
  { faults, requests, policy, shape, now }: Context,
  surface: Surface,
  request: IncomingMessage,
  response: ServerResponse,
): Promise<void> {
  const incoming = readIncoming(request)
  const { method, path, query } = incoming
  const { headers } = request
  response.sendDate = false
  response.setHeader('Date', httpDate(now()))
  const logged = logEntry(request, incoming, surface.host)
  requests.add(logged)
  const body = await readBody(request)
  const fault = faults.take({
    method,
    path,
    resource: surface.kindOf(method, path),
    hasRange: headers.range !== undefined,
    hasCursor: cursorAsked(shape.lists, query) !== '',
  })
  const asked: ServiceRequest = { method, path, query, headers, body, fault }
  const answerWith = (under: Policy): Promise<NegotiatedAnswer> => surface.answer(asked, under)
  const outlet: Outlet = { response, head: method === 'HEAD', logged }
  if (fault === undefined) await deliver(outlet, finished(await answerWith(policy), policy, headers))
  else await deliverFaulty(outlet, fault, answerWith, policy)
}
