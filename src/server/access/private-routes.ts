import type { FastifyInstance, RouteHandlerMethod, onRequestHookHandler } from 'fastify'
import type { IncomingMessage } from 'node:http'
import { type RestOfPaths, isReadAt, patternOf } from '../app.ts'
import { problems } from '../contract/answers.ts'
import type { PathOperation, SecurityRequirement } from '../contract/openapi.ts'
import { readRequestHeaders } from '../http/request-headers.ts'
import { type Failures, type Problem, type ProblemForm, pathNotFound, sendProblem } from '../http/problems.ts'
import type { SnapshotOrigin } from '../http/origin.ts'
import { decodePart, rawTarget, readablePath } from '../http/request-target.ts'
import type { ServedSnapshot } from '../snapshot/served.ts'
import { refuseStale } from '../snapshot/stale.ts'
import type { Access } from './access.ts'
import type { PrivateRoute } from './private-route.ts'
import { type Links, linkProblem } from './signed-links.ts'
import { errorForm, isPrivate, isWrittenAt, refuseWriting, surfaceOf } from './surface.ts'

/** What decides who may read a private path, and what refusals are made from. */
interface PrivateParts {
  readonly served: Pick<ServedSnapshot, 'knownOrigin'>
  readonly access: Access
  readonly links: Pick<Links, 'verifyLink'>
  readonly failures: Failures
}

/** What private routes are answered with, beside what is theirs. */
interface RouteParts extends PrivateParts {
  readonly baseUrl: (request: IncomingMessage) => string
}

/**
 * Creates the hook that every route with `opensWith` passes: the key, or the signed link. Nothing of such a path is looked up
 * before, so a client without a key learns nothing about what exists.
 */
export function createPrivateHook(parts: PrivateParts): onRequestHookHandler {
  const { access, links, failures } = parts
  return (request, reply, done) => {
    const { opensWith, source, path = '' } = request.routeOptions.config
    if (opensWith === undefined || request.is404) return done()
    const { raw } = request
    const form = errorForm(surfaceOf(path))
    try {
      const denied = opensWith === 'link' ? linkProblem(links.verifyLink(raw.url ?? '')) : access.judge(raw)
      if (denied === null) return done()
      sendProblem(raw, reply.raw, denied, form)
    } catch (error) {
      failures.answer(error, raw, reply.raw, { form, origin: originOf(parts, source) })
    }
  }
}

function originOf({ served }: Pick<PrivateParts, 'served'>, source: PrivateRoute['source']): SnapshotOrigin | null {
  return source === undefined ? null : served.knownOrigin(source)
}

/**
 * Answers what no route takes on the surfaces that need a key: a method that writes is refused for every client, an unknown
 * path is 404 for clients with a key.
 */
export function createPrivateRest(app: FastifyInstance, { served, access, failures }: PrivateParts): RestOfPaths {
  return (request, response) => {
    const { url = '', method = '' } = request
    const { path } = rawTarget(url)
    const surface = surfaceOf(readablePath(url))
    if (!isPrivate(surface)) return false
    const form = errorForm(surface)
    const reads = method === 'GET' || method === 'HEAD'
    try {
      const isRead = isDecodable(path) && isReadAt(app, path)
      const isRefused = !reads && (isWrittenAt(path) || isRead)
      const origin = isRefused && isRead ? served.knownOrigin(surface === 'identity' ? 'identity' : 'catalog') : null
      const problem = isRefused ? refuseWriting(method, path) : (access.judge(request) ?? unknown(path))
      sendProblem(request, response, { origin, ...problem }, form)
    } catch (error) {
      failures.answer(error, request, response, { form })
    }
    return true
  }
}

function isDecodable(path: string): boolean {
  try {
    decodePart(path)
    return true
  } catch {
    return false
  }
}

/** 404 for a path that no route takes. Throws `bad_request` for one that cannot be decoded. */
function unknown(path: string): Problem {
  const asked = decodePart(path)
  if (!isWrittenAt(path)) return pathNotFound(asked)
  const message = 'there is nothing to read at this path: the service itself only takes orders here'
  return { ...pathNotFound(asked), message }
}

const KEY: readonly SecurityRequirement[] = [{ bearer: [] }, { basic: [] }]
const LINK: readonly SecurityRequirement[] = [{ link: [] }]

/** The route's contract, with what the hook adds: the credential, and problems in the surface's form. */
function operationOf({ path, opensWith, contract }: PrivateRoute): PathOperation {
  if (opensWith === 'link') return { ...contract, security: LINK }
  const responses = { ...problems(errorForm(surfaceOf(path)), 400, 401, 404, 429, 500, 503), ...contract.responses }
  return { ...contract, responses, security: KEY }
}

/** Adds private routes, each with and without a slash at its end. */
export function addPrivateRoutes(app: FastifyInstance, parts: RouteParts, routes: readonly PrivateRoute[]): void {
  for (const route of routes) {
    const path = route.path.replaceAll('+}', '}')
    const { opensWith = 'key', source } = route
    const config = { path, opensWith, ...(source && { source }) }
    const handler = handlerOf(app, parts, route)
    const pattern = patternOf(path)
    const other = pattern.endsWith('/') ? pattern.slice(0, -1) : `${pattern}/`
    app.get(pattern, { schema: operationOf(route), config }, handler)
    app.get(other, { schema: operationOf(route), config: { ...config, isAlias: true } }, handler)
    if (path !== route.path) app.joinSegments(route.path.replace(/\/$/, ''))
  }
}

function handlerOf(app: FastifyInstance, parts: RouteParts, route: PrivateRoute): RouteHandlerMethod {
  const form = errorForm(surfaceOf(route.path))
  return (request, reply) => {
    const params = request.params as Readonly<Record<string, string>>
    app.onNode((raw, response) => answer(parts, route, { raw, response, params, form }))(request, reply)
  }
}

interface Asked {
  readonly raw: Parameters<RestOfPaths>[0]
  readonly response: Parameters<RestOfPaths>[1]
  readonly params: Readonly<Record<string, string>>
  readonly form: ProblemForm
}

function answer(parts: RouteParts, route: PrivateRoute, { raw, response, params, form }: Asked): void {
  const { failures, baseUrl } = parts
  const origin = originOf(parts, route.source)
  const refuse = (problem: Problem): void => sendProblem(raw, response, { origin, ...problem }, form)
  const fail = (error: unknown): void => failures.answer(error, raw, response, { form, origin })
  const { query } = rawTarget(raw.url ?? '')
  try {
    if (origin !== null) refuseStale(origin)
    const exchange = { request: raw, response, requestHeaders: readRequestHeaders(raw.rawHeaders) }
    const asked = { params, query: new URLSearchParams(query), baseUrl: () => baseUrl(raw), refuse }
    route.answer({ ...exchange, ...asked })?.catch(fail)
  } catch (error) {
    fail(error)
  }
}
