import type { Config } from '../../config/schema.ts'
import type { PinnedReads } from '../../store/reads.ts'
import { type Access, createAccess } from './access.ts'
import { createTrust } from '../http/client-address.ts'
import { arrivalOf, baseUrl } from '../http/forwarded.ts'
import {
  type Failures,
  type ServerLog,
  type Problem,
  methodNotAllowed,
  pathNotFound,
  sendProblem,
} from '../http/problems.ts'
import { PRIVATE_CACHING, type Heads, createHeads } from '../http/response.ts'
import type { ReadingThread } from '../reading/thread.ts'
import { createLinkSecrets } from './link-secrets.ts'
import { type Links, createLinks, linkProblem } from './signed-links.ts'
import type { ServedSnapshot } from '../snapshot/served.ts'
import { refuseStale } from '../snapshot/stale.ts'
import { type PrivateRoute, type RouteMatch, type RouteTable, createRouteTable } from './route-table.ts'
import type { IncomingMessage, ServerResponse } from 'node:http'
import { errorForm, isPrivate, isWrittenAt, refuseWriting, surfaceOf } from './surface.ts'
import { decodePart, rawTarget } from '../http/request-target.ts'
import { readRequestHeaders } from '../http/request-headers.ts'

/** What private routes are made from. */
export interface RouteTools {
  readonly served: ServedSnapshot
  /** For `sendAnswer`: head fields that keep shared caches away from private answers. */
  readonly heads: Heads
  /** Signs local URLs; `RouteCall.baseUrl()` goes before them. */
  readonly links: Links
  /** Unix milliseconds. */
  readonly now: () => number
  /** Answers what would keep the serving thread for long. */
  readonly reading: ReadingThread
  /** Has something closed together with the server. */
  readonly atEnd: (close: () => Promise<void>) => void
}

/** What the gate is made from. */
interface GateOptions {
  readonly reads: PinnedReads
  /** Its keys are hashed at once, and not kept. */
  readonly settings: Config['server']
  /** The address that the server is bound to; null while it is not. */
  readonly listeningOn: () => string | null
  readonly served: ServedSnapshot
  readonly failures: Failures
  readonly routes: (tools: RouteTools) => readonly PrivateRoute[]
  readonly log: ServerLog | null
  readonly now: () => number
  readonly reading: ReadingThread
  readonly atEnd: RouteTools['atEnd']
}

/** The private side of the API. */
export interface Gate {
  /** Who may read; for pages that show more to those who may. */
  readonly access: Access
  readonly answer: PrivatePaths
  /** The private routes, as they are declared. */
  readonly routes: readonly PrivateRoute[]
  /** Logs who may read private paths; called once the server listens. */
  readonly announce: () => void
  /** Returns the URL under which a client reaches the mirror, without a slash at the end. */
  readonly baseUrl: (request: IncomingMessage) => string
}

/** Puts routes, keys and links together. Throws `config` for keys or proxies that cannot be. */
export function createGate(options: GateOptions): Gate {
  const { reads, settings, listeningOn, served, failures, log, now } = options
  const { reading, atEnd } = options
  const { publicUrl } = settings
  const trusted = createTrust(settings.trustProxy)
  const access = createAccess({ settings, reads, trusted, listeningOn, log, now })
  const own = reads.live.secrets.readSecret('links')
  const links = createLinks(createLinkSecrets(settings.linkSecretFile, own, { log }), now)
  const heads = createHeads(PRIVATE_CACHING)
  const tools = { served, heads, links, now, reading, atEnd }
  const routes = createRouteTable(options.routes(tools))
  const base = (request: IncomingMessage): string => baseUrl({ publicUrl, trusted }, arrivalOf(request))
  const parts = { served, routes, access, links, failures, baseUrl: base }
  const answer = createPrivatePaths(parts)
  return { access, answer, routes: routes.declared, announce: access.announce, baseUrl: base }
}

/** What the private paths are answered from. */
interface PrivateOptions {
  readonly served: Pick<ServedSnapshot, 'knownOrigin'>
  readonly routes: RouteTable
  readonly access: Access
  readonly links: Links
  readonly failures: Failures
  readonly baseUrl: (request: IncomingMessage) => string
}

/** Answers a request if it is for a private path; false when it is not. */
type PrivatePaths = (request: IncomingMessage, response: ServerResponse) => boolean

/**
 * The only entry to the routes that need a key. Checks in this order: the method (only GET and HEAD, for every client), the key
 * or the signed link, then the path. A client without a key therefore learns nothing about what exists.
 */
function createPrivatePaths(options: PrivateOptions): PrivatePaths {
  const { served, routes, failures, baseUrl } = options
  return (request, response) => {
    const { path, query } = rawTarget(request.url ?? '')
    const match = find(routes, path)
    const surface = surfaceOf(match?.route.path ?? path)
    if (match === null && !isPrivate(surface)) return false
    const form = errorForm(surface)
    const source = match?.route.source
    const origin = source === undefined ? null : served.knownOrigin(source)
    const refuse = (problem: Problem): void => sendProblem(request, response, { origin, ...problem }, form)
    const fail = (error: unknown): void => failures.answer(error, request, response, { form, origin })
    try {
      const found = open(options, request, path, match)
      if ('status' in found) {
        refuse(found)
        return true
      }
      if (origin !== null) refuseStale(origin)
      found.route
        .answer({
          request,
          response,
          requestHeaders: readRequestHeaders(request.rawHeaders),
          params: found.params,
          query: new URLSearchParams(query),
          baseUrl: () => baseUrl(request),
          refuse,
        })
        ?.catch(fail)
    } catch (error) {
      fail(error)
    }
    return true
  }
}

function find(routes: RouteTable, path: string): RouteMatch | null {
  try {
    return routes.match(path)
  } catch {
    return null // not decodable: reported below, to clients with a key only
  }
}

function open(
  { access, links }: PrivateOptions,
  request: IncomingMessage,
  path: string,
  match: RouteMatch | null,
): RouteMatch | Problem {
  const { method = '', url = '' } = request
  const reads = method === 'GET' || method === 'HEAD'
  const linked = match?.route.guard === 'link'
  if (!reads && (match !== null || isWrittenAt(path)))
    return linked ? methodNotAllowed(method) : refuseWriting(method, path)
  const denied = linked ? linkProblem(links.verifyLink(url)) : access.judge(request)
  if (denied !== null) return { ...denied, origin: null }
  if (match !== null) return match
  const asked = decodePart(path)
  return isWrittenAt(path) ? nothingToRead(asked) : pathNotFound(asked)
}

/** 404 for a path at which the service only takes orders. */
function nothingToRead(path: string): Problem {
  const message = 'there is nothing to read at this path: the service itself only takes orders here'
  return { ...pathNotFound(path), message }
}
