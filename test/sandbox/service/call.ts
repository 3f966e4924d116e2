import type { IncomingHttpHeaders, IncomingMessage, ServerResponse } from 'node:http'
import type { Fault } from '../faults/fault.ts'
import { type NegotiatedAnswer, type Policy, finished, httpDate } from '../http/negotiate.ts'
import type { Representation } from '../feed/representation.ts'
import { type Outlet, deliver } from '../deliver.ts'
import { deliverFaulty } from '../faults/apply.ts'
import type { Context } from '../handler.ts'
import { logEntry, readBody, readIncoming } from '../incoming.ts'
import { cursorAsked } from './shapes/list.ts'
import type { Surface } from './surface.ts'

/** A request that reached a surface, body read, with the fault that it meets, if any. */
export interface ServiceRequest {
  method: string
  path: string
  query: URLSearchParams
  headers: IncomingHttpHeaders
  body: string
  fault: Fault | undefined
}

/** What an account may do. */
export type Role = 'admin' | 'member' | 'readonly'

/** Who asks. */
export interface Caller {
  role: Role
  /** Whether the credential is good for the identity surface. */
  identity: boolean
  /** Whether it is good for the remediation surface and the settings. */
  remediation: boolean
}

/** A request on its way to the route that answers it: the path's parameters in order, decoded. */
export interface Call {
  request: ServiceRequest
  params: readonly string[]
  caller: Caller
}

/** A representation to negotiate, or an answer that is already what it should be. */
export type Reply = Representation | NegotiatedAnswer

/** An error that the surface words in its own form. */
export class ServiceError extends Error {
  readonly status: number
  /** The identity surface's `error` (service API, section 7); derived from the status when absent. */
  readonly code: string | undefined
  readonly headers: Record<string, string>

  constructor(status: number, message: string, code?: string, headers = {}) {
    super(message)
    this.status = status
    this.code = code
    this.headers = headers
  }
}

/** A thing that is not there: 404. */
export function missing(what: string, id: string): ServiceError {
  return new ServiceError(404, `no such ${what}: ${id}`)
}

/** The JSON object in a request's body; 400 when it is none. */
export function bodyObject({ body }: ServiceRequest): Record<string, unknown> {
  const value = parse(body)
  if (typeof value === 'object' && value !== null && !Array.isArray(value)) {
    return value as Record<string, unknown>
  }
  throw new ServiceError(400, 'the body must be a JSON object', 'invalid_request')
}

function parse(text: string): unknown {
  try {
    return JSON.parse(text)
  } catch {
    return undefined
  }
}

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
