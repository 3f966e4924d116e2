import type { IncomingMessage, ServerResponse } from 'node:http'
import type { Access } from './access.ts'
import type { Failures } from './failure.ts'
import { type Links, linkProblem } from './links.ts'
import type { ServedSnapshot } from './moment.ts'
import type { Paths } from './paths.ts'
import { type Problem, methodNotAllowed, pathNotFound, sendProblem } from './problem.ts'
import type { RouteMatch, RouteTable } from './routes.ts'
import { errorForm, isPrivate, isWrittenAt, refuseWriting, surfaceOf } from './surface.ts'
import { decodePart, rawTarget } from './target.ts'
import { readRequestHeaders } from './wishes.ts'

/** What the private paths are answered from. */
export interface PrivateOptions {
  readonly moment: Pick<ServedSnapshot, 'knownOrigin'>
  readonly routes: RouteTable
  readonly access: Access
  readonly links: Links
  readonly failures: Failures
  readonly paths: Paths
  readonly baseUrl: (request: IncomingMessage) => string
}

/** Answers a request if it is for a private path; false when it is not. */
export type PrivatePaths = (request: IncomingMessage, response: ServerResponse) => boolean

/**
 * The door before everything that takes a key: no route behind it is reached in another way. In this order: what writes
 * is refused (that is the same for everybody), the key or the link is judged, then the path is looked at. So
 * whoever has no key learns nothing of what is there.
 */
export function createPrivatePaths(options: PrivateOptions): PrivatePaths {
  const { moment, routes, failures, baseUrl } = options
  return (request, response) => {
    const { path, query } = rawTarget(request.url ?? '')
    const match = find(routes, path)
    const surface = surfaceOf(match?.route.path ?? path)
    if (match === null && !isPrivate(surface)) return false
    const form = errorForm(surface)
    const source = match?.route.source
    const origin = source === undefined ? null : moment.knownOrigin(source)
    const refuse = (problem: Problem): void =>
      sendProblem(request, response, { origin, ...problem }, form)
    const fail = (error: unknown): void =>
      failures.answer(error, request, response, { form, origin })
    try {
      const found = open(options, request, path, match)
      if ('status' in found) refuse(found)
      else
        found.route
          .answer({
            request,
            response,
            wishes: readRequestHeaders(request.rawHeaders),
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
    return null // not decodable: said below, to whom the path may be discussed with
  }
}

function open(
  { access, links, paths, routes }: PrivateOptions,
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
  return isWrittenAt(path)
    ? nothingToRead(asked)
    : pathNotFound(asked, paths.closest(asked, routes.paths))
}

/** 404 for a path at which the service only takes orders. */
function nothingToRead(path: string): Problem {
  const message = 'there is nothing to read at this path: the service itself only takes orders here'
  return { ...pathNotFound(path, null), message }
}
