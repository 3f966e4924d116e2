import type { SourceName } from '../../base/domain/sources.ts'
import type { Problem } from '../http/problems.ts'
import { decodePart } from '../http/request-target.ts'
import type { Exchange } from '../http/response.ts'
import type { PathContract } from '../contract/openapi.ts'

/** A GET (and HEAD) of a private route on its way to its answer. */
export interface RouteCall extends Exchange {
  /** Values of the path's parameters, decoded; never empty. */
  readonly params: Readonly<Record<string, string>>
  /** Read a parameter with `onlyValue` (query.ts), which refuses one that is given twice. */
  readonly query: URLSearchParams
  /** Where this client reaches the mirror, without a slash at the end: what a signed link is put after. */
  readonly baseUrl: () => string
  /** Answers with a problem, in the form of the path's surface. */
  readonly refuse: (problem: Problem) => void
}

/** A path that takes a local key, or a signed link, to read. */
export interface PrivateRoute {
  /**
   * Such as `/v1/tags/{tagID}/sbom`. `{name}` matches one segment, `{name+}` for one or more, slashes included.
   * With and without a slash at the end it is the same route.
   */
  readonly path: string
  /** What opens it; a local key when not given. */
  readonly guard?: 'key' | 'link'
  /** Whose snapshot its errors name in their X-Mirror headers; none when not given. */
  readonly source?: SourceName
  /** What it answers, for the OpenAPI document; keys and their problems are added there. */
  readonly contract?: PathContract
  /** Answers, or throws what is then answered in the form of the path's surface (MirrorError: `not_found`, …). */
  readonly answer: (call: RouteCall) => Promise<void> | undefined
}

/** A route found for a path. */
export interface RouteMatch {
  readonly route: PrivateRoute
  readonly params: Readonly<Record<string, string>>
}

/** All private routes. */
export interface RouteTable {
  /** Every route as it was declared. */
  readonly declared: readonly PrivateRoute[]
  /** The route of a path (percent-encoded, no query); null when there is none. Throws `bad_request` if undecodable. */
  readonly match: (path: string) => RouteMatch | null
}

interface Pattern {
  readonly route: PrivateRoute
  readonly segments: readonly string[]
  /** Fixed segments of all: the route with more of them is the more exact one. */
  readonly fixed: number
}

/** Throws for a path that is declared twice or has more than one `{name+}`: defects, seen at start. */
export function createRouteTable(routes: readonly PrivateRoute[]): RouteTable {
  const patterns = routes.map(compile).sort((one, other) => other.fixed - one.fixed)
  const shapes = new Set(routes.map(({ path }) => path.replace(/\{\w+/g, '{').replace(/\/$/, '')))
  if (shapes.size < routes.length) throw new Error('two private routes have the same path')
  return {
    declared: routes,
    match(path) {
      const segments = path.replace(/\/$/, '').split('/').slice(1).map(decodePart)
      for (const pattern of patterns) {
        const params = fit(pattern.segments, segments)
        if (params !== null) return { route: pattern.route, params }
      }
      return null
    },
  }
}

function compile(route: PrivateRoute): Pattern {
  const segments = route.path.replace(/\/$/, '').split('/').slice(1)
  const fixed = segments.filter((segment) => parameterOf(segment) === null).length
  if (segments.filter((segment) => segment.endsWith('+}')).length > 1)
    throw new Error(`${route.path} has two parameters that take several segments`)
  return { route, segments, fixed }
}

function parameterOf(segment: string): string | null {
  return /^\{(\w+)\+?\}$/.exec(segment)?.[1] ?? null
}

function fit(pattern: readonly string[], given: readonly string[]): Record<string, string> | null {
  const params: Record<string, string> = {}
  const spare = given.length - pattern.length
  let at = 0
  for (const segment of pattern) {
    const name = parameterOf(segment)
    const length = segment.endsWith('+}') ? spare + 1 : 1
    const taken = given.slice(at, at + Math.max(0, length))
    if (length < 1 || taken.length < length) return null
    at += length
    if (name === null) {
      if (taken[0] !== segment) return null
    } else if (taken.includes('')) return null
    else params[name] = taken.join('/')
  }
  return at === given.length ? params : null
}
