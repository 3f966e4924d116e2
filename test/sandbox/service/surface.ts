import type { IncomingHttpHeaders } from 'node:http'
import type { ResourceKind } from '../faults/fault.ts'
import { type NegotiatedAnswer, type Policy, jsonAnswer, negotiate } from '../http/negotiate.ts'
import type { LoggedRequest } from '../request-log.ts'
import { type Caller, type ServiceRequest, ServiceError } from './request.ts'
import type { RateLimit } from './options.ts'
import { type Match, type Route, createPathTest, createRouter } from './router.ts'
import type { HttpForm } from './shapes/shape.ts'

/** One of the service's addresses with its rules. */
export interface Surface {
  host: LoggedRequest['host']
  /** Whether a path is this surface's to answer, if only with an error. */
  owns(path: string): boolean
  kindOf(method: string, path: string): ResourceKind | undefined
  /** Never rejects for what a request did wrong: that is an answer in the surface's error form. */
  answer(request: ServiceRequest, policy: Policy): Promise<NegotiatedAnswer>
}

/** What makes one surface differ from another. */
interface SurfaceRules {
  host: LoggedRequest['host']
  owns: (path: string) => boolean
  routes: readonly Route[]
  /** Throws a ServiceError for a credential that is not good enough. */
  admit: (headers: IncomingHttpHeaders, path: string) => Caller
  limiter: (path: string) => Record<string, string>
  wordError: (error: ServiceError) => NegotiatedAnswer
  /** Which paths are refused, or have another form. */
  http: Pick<HttpForm, 'refused' | 'keyed'>
}

const KEYED = { 7: { name: 'seven' }, 8: { name: 'eight' } }

/** A surface: limit, then credential, then route; a wrong credential cannot learn which paths exist. */
export function createSurface(rules: SurfaceRules): Surface {
  const find = createRouter(rules.routes)
  const isRefused = createPathTest(rules.http.refused)
  const isKeyed = createPathTest(rules.http.keyed)
  const serve = async (request: ServiceRequest, policy: Policy): Promise<NegotiatedAnswer> => {
    const caller = rules.admit(request.headers, request.path)
    const { route, params } = allowed(find(request.method, request.path), request)
    if (isRefused(request.path)) throw new ServiceError(403, 'this key has no right to it', 'insufficient_scope')
    if (isKeyed(request.path)) return jsonAnswer(200, KEYED)
    const reply = await route.serve({ request, params, caller })
    if ('status' in reply) return reply
    return negotiate(request.method, request.headers, reply, policy)
  }
  return {
    host: rules.host,
    owns: rules.owns,
    kindOf: (method, path) => find(method, path)?.route?.kind,
    async answer(request, policy) {
      let limits: Record<string, string> = {}
      try {
        limits = rules.limiter(request.path)
        const answer = await serve(request, policy)
        return { ...answer, headers: { ...answer.headers, ...limits } }
      } catch (error) {
        if (!(error instanceof ServiceError)) throw error
        const answer = rules.wordError(error)
        return { ...answer, headers: { ...answer.headers, ...limits, ...error.headers } }
      }
    },
  }
}

function allowed(
  match: Match | undefined,
  { method, path }: ServiceRequest,
): { route: Route; params: readonly string[] } {
  if (match === undefined) throw new ServiceError(404, `no such path: ${path}`)
  const { route, params, allow } = match
  if (route !== undefined) return { route, params }
  throw new ServiceError(405, `${method} is not allowed here`, undefined, { Allow: allow })
}

/** Counts a request; gives the headers for its answer, or throws a 429 that carries them. */
type Limiter = () => Record<string, string>

/** Fixed windows by the given clock, the first one from the first request on. Without a limit: no headers. */
export function createRequestLimiter(limit: RateLimit | undefined, now: () => number): Limiter {
  if (limit === undefined) return () => ({})
  const length = limit.windowSeconds * 1000
  let start = Number.NEGATIVE_INFINITY
  let used = 0
  return () => {
    const time = now()
    if (time >= start + length) {
      start = time
      used = 0
    }
    used++
    const headers = {
      'X-RateLimit-Limit': String(limit.requests),
      'X-RateLimit-Remaining': String(Math.max(0, limit.requests - used)),
    }
    if (used <= limit.requests) return headers
    const wait = Math.max(1, Math.ceil((start + length - time) / 1000))
    throw new ServiceError(429, `rate limit exceeded: wait ${wait} s`, 'too_many_requests', {
      ...headers,
      'Retry-After': String(wait),
    })
  }
}
