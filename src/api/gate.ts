import type { Config } from '../config/schema.ts'
import type { PinnedReads } from '../store/pinned.ts'
import { type Access, createAccess } from './access.ts'
import { createTrust } from './addresses.ts'
import { arrivalOf, baseUrl } from './base-url.ts'
import type { Failures, ServerLog } from './failure.ts'
import { type Heads, createHeads } from './heads.ts'
import { type Links, createLinks } from './links.ts'
import type { ServedSnapshot } from './moment.ts'
import type { Paths } from './paths.ts'
import { type PrivatePaths, createPrivatePaths } from './private.ts'
import { type PrivateRoute, createRouteTable } from './routes.ts'

/** What private routes are made from. */
export interface RouteTools {
  readonly moment: ServedSnapshot
  /** For `sendAnswer`: head fields that keep shared caches away from private answers. */
  readonly heads: Heads
  /** Signs local URLs; `RouteCall.baseUrl()` goes before them. */
  readonly links: Links
  /** Unix milliseconds. */
  readonly now: () => number
  /** `Cache-Control` of private answers. */
  readonly cacheControl: string
  /** Has something closed together with the server. */
  readonly atEnd: (close: () => Promise<void>) => void
}

/** What the gate is made from. */
export interface GateOptions {
  readonly reads: PinnedReads
  /** Its keys are hashed at once, and not kept. */
  readonly settings: Config['server']
  /** The address that the server is bound to; null while it is not. */
  readonly listeningOn: () => string | null
  readonly moment: ServedSnapshot
  readonly paths: Paths
  readonly failures: Failures
  readonly routes: (tools: RouteTools) => readonly PrivateRoute[]
  readonly log: ServerLog | null
  readonly now: () => number
  readonly atEnd: RouteTools['atEnd']
}

/** The private side of the API. */
export interface Gate {
  /** Who may read; for pages that show more to those who may. */
  readonly access: Access
  readonly answer: PrivatePaths
  /** The private paths, as they are declared. */
  readonly paths: readonly string[]
  /** Tells the log who may read them; once the server listens. */
  readonly announce: () => void
}

/** Puts routes, keys and links together. Throws `config` for keys or proxies that cannot be. */
export function createGate(options: GateOptions): Gate {
  const { reads, settings, listeningOn, moment, paths, failures, log, now, atEnd } = options
  const { publicUrl, cacheMaxAgeSeconds } = settings
  const trusted = createTrust(settings.trustProxy)
  const access = createAccess({ settings, reads, trusted, listeningOn, log, now })
  const links = createLinks(reads.live.readSecret('links'), now)
  const cacheControl = `private, max-age=${cacheMaxAgeSeconds}, must-revalidate`
  const heads = createHeads(cacheControl)
  const tools = { moment, heads, links, now, cacheControl, atEnd }
  const routes = createRouteTable(options.routes(tools))
  const answer = createPrivatePaths({
    moment,
    routes,
    access,
    links,
    failures,
    paths,
    baseUrl: (request) => baseUrl({ publicUrl, trusted }, arrivalOf(request)),
  })
  return { access, answer, paths: routes.paths, announce: access.announce }
}
