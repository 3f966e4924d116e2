import type { ResourceKind } from '../faults/fault.ts'
import { decode } from '../feed/routes.ts'
import type { Call, Reply } from './request.ts'

/** One row of the contract's endpoint tables (service API, section 4). */
export interface Route {
  method: 'GET' | 'POST' | 'DELETE'
  /** `{imageRepo}` and `{name}` may span slashes, every other parameter is one segment. */
  path: string
  kind: ResourceKind
  /** Throws a ServiceError for what it refuses. */
  serve(call: Call): Reply | Promise<Reply>
}

/** A path that is one of the surface's, for any method. */
export interface Match {
  route: Route | undefined
  params: readonly string[]
  /** Value of its Allow header. */
  allow: string
}

/** Finds a path's route; the first path that fits wins. HEAD is answered as GET. */
export function createRouter(routes: readonly Route[]): (method: string, path: string) => Match | undefined {
  const paths = new Map<string, { expression: RegExp; routes: Route[] }>()
  for (const route of routes) {
    const known = paths.get(route.path) ?? { expression: expressionOf(route.path), routes: [] }
    known.routes.push(route)
    paths.set(route.path, known)
  }
  return (method, path) => {
    for (const { expression, routes: here } of paths.values()) {
      const params = expression.exec(path)?.slice(1).map(decode)
      if (params === undefined) continue
      const whole = params.filter((param) => param !== undefined)
      if (whole.length < params.length) continue
      const wanted = method === 'HEAD' ? 'GET' : method
      const allow = here.flatMap((one) => (one.method === 'GET' ? ['GET', 'HEAD'] : [one.method]))
      const route = here.find((one) => one.method === wanted)
      return { route, params: whole, allow: allow.join(', ') }
    }
    return undefined
  }
}

/** Returns a test for paths of these forms. */
export function createPathTest(forms: readonly string[] = []): (path: string) => boolean {
  const expressions = forms.map(expressionOf)
  return (path) => expressions.some((expression) => expression.test(path))
}

function expressionOf(path: string): RegExp {
  const source = path.replace(/[.+]/g, '\\$&').replace(/\{(\w+)\}/g, (_, name: string) => {
    return name === 'imageRepo' || name === 'name' ? '(.+)' : '([^/]+)'
  })
  return new RegExp(`^${source}$`)
}
