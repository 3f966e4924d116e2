import type { SourceName } from '../../base/domain/sources.ts'
import type { Problem } from '../http/problems.ts'
import type { Exchange } from '../http/response.ts'
import type { PathOperation } from '../contract/openapi.ts'

/** A GET (and HEAD) of a private route on its way to its answer. */
export interface RouteCall extends Exchange {
  /** Values of the path's parameters, decoded; never empty. */
  readonly params: Readonly<Record<string, string>>
  /** Read a parameter with `onlyValue` (request-target.ts), which refuses one that is given twice. */
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
  readonly opensWith?: 'key' | 'link'
  /** Whose snapshot its errors name in their X-Mirror headers; none when not given. */
  readonly source?: SourceName
  /** What it answers, for the OpenAPI document; keys and their problems are added to it. */
  readonly contract: PathOperation
  /** Answers, or throws what is then answered in the form of the path's surface (MirrorError: `not_found`, …). */
  readonly answer: (call: RouteCall) => Promise<void> | undefined
}
