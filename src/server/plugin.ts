import type { FastifyPluginCallback } from 'fastify'
import type { IncomingMessage } from 'node:http'
import type { Config } from '../config/schema.ts'
import type { Access } from './access/access.ts'
import type { Links } from './access/signed-links.ts'
import type { EdgeFields } from './http/edge-fields.ts'
import type { Paths } from './http/paths.ts'
import type { Failures, ServerLog } from './http/problems.ts'
import type { Heads } from './http/response.ts'
import type { ReadingThread } from './reading/thread.ts'
import type { ServedSnapshot } from './snapshot/served.ts'
import type { Reports } from './status/reports.ts'
import type { RestOfPaths } from './app.ts'
import type { HttpHandler } from '../base/connections/server.ts'

/** What the routes of a module are made from. */
export interface ServerTools {
  readonly config: Config
  readonly dataDir: string
  readonly log: ServerLog | null
  /** Unix milliseconds. */
  readonly now: () => number
  readonly served: ServedSnapshot
  /** The mirrored public paths. */
  readonly paths: Paths
  /** Head fields of public answers. */
  readonly publicHeads: Heads
  /** Head fields that keep shared caches away from private answers. */
  readonly heads: Heads
  readonly edge: EdgeFields
  readonly failures: Failures
  readonly access: Access
  /** Signs local URLs; `baseUrl` goes before them. */
  readonly links: Links
  /** Returns the URL under which a client reaches the mirror, without a slash at the end. */
  readonly baseUrl: (request: IncomingMessage) => string
  /** Answers what would keep the serving thread for long. */
  readonly reading: ReadingThread
  readonly reports: Reports
  /** Has something moved on after the served snapshot was. */
  readonly follow: (refresh: () => void) => void
  /** Has something closed together with the server. */
  readonly atEnd: (close: () => Promise<void>) => void
}

/** Adds the routes of a module to the server. */
export type ServerPlugin = FastifyPluginCallback<ServerTools>

/** Returns what answers the rest of the paths that begin with one of these. */
export function below(roots: readonly string[], answer: HttpHandler): RestOfPaths {
  return (request, response) => {
    if (!roots.some((root) => request.url?.startsWith(root) === true)) return false
    answer(request, response)
    return true
  }
}
