import type { IncomingHttpHeaders } from 'node:http'
import type { Fault } from '../faults/fault.ts'
import type { NegotiatedAnswer } from '../http/negotiate.ts'
import type { Representation } from '../feed/representation.ts'

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
