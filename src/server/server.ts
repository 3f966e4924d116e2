import type { FastifyInstance, FastifyPluginCallback } from 'fastify'
import type { Server } from 'node:http'
import type { Config } from '../config/schema.ts'
import { type Account, createAccount } from '../base/connections/account.ts'
import type { ResponseAccount } from '../base/connections/responses.ts'
import type { CertificateFollower } from '../base/certificate.ts'
import type { SourceName } from '../base/domain/sources.ts'
import type { PinnedReads } from '../store/reads.ts'
import { createHolders } from './access/holders.ts'
import { type PrivateSide, createPrivateSide } from './access/private-side.ts'
import { createPrivateHook, createPrivateRest } from './access/private-routes.ts'
import { createSegmentJoiner } from './access/segments.ts'
import { createApp } from './app.ts'
import { createQueryHook } from './contract/known-parameters.ts'
import { contractRoutes } from './contract/route.ts'
import { feedRoutes } from './feeds/routes.ts'
import { sbomRoute } from './program/sbom.ts'
import { createEdgeFields } from './http/edge-fields.ts'
import { type FollowedParts, createFollowerRoutes } from './followers/routes.ts'
import { createTrust } from './http/client-address.ts'
import { type HttpHandler, drain } from '../base/connections/server.ts'
import { createHttp, traced, withReserve } from './http/node-server.ts'
import { createPaths } from './http/paths.ts'
import { type Failures, type ServerLog, createFailures } from './http/problems.ts'
import { isPath, notPath, originForm } from './http/request-target.ts'
import { type Heads, PUBLIC_CACHING, createHeads } from './http/response.ts'
import { type ServerAddress, boundAddress, createListening } from './listen.ts'
import type { ServerPlugin, ServerTools } from './plugin.ts'
import type { ReadingData } from './reading/request.ts'
import { type ReadingThread, openReading } from './reading/thread.ts'
import { type SnapshotWatcher, createServedSnapshot, followStore } from './snapshot/served.ts'
import { createStaleRule } from './snapshot/stale.ts'
import { isReserved, limitConnections } from '../base/connections/limit.ts'
import { createDecisionLog } from './status/decisions.ts'
import { type ShownParts, createStatusReports } from './status/reports.ts'
import { type MetricsPage, statusRoutes } from './status/routes.ts'
import { type PeoplePages, type PeopleTools, peopleRoutes } from './people.ts'
import { type ServedRecords, openFastRecords } from './feeds/fast-records.ts'
import { withRequestLog } from './access/request-log.ts'
import { metricSurface } from './access/surface.ts'

/** What a server answers from, and its settings. */
export interface ServerOptions {
  /** Stays the caller's to close, after the server. */
  readonly reads: PinnedReads
  readonly dataDir: string
  readonly config: Config
  readonly version: string
  /** Unix milliseconds, as `now` and `nextRunAt`. */
  readonly startedAt: number
  readonly now: () => number
  readonly log: ServerLog | null
  readonly nextRunAt: (source: SourceName) => number | null
  /** How long requests in flight may take to finish on `close`; 10 seconds when not given. */
  readonly closeGraceMs?: number
  /** Called when the derived archive is missing, at each request for it; it can be rebuilt. */
  readonly onArchiveLost?: () => void
  /** Notes an error of a read; true when it says that stored data cannot be read: then its cause is in the log. */
  readonly onUnreadable?: (error: unknown) => boolean
  /** Starts what answers beside the serving thread; a thread of its own when not given. */
  readonly startReading?: (data: ReadingData) => ReadingThread
  /** What other modules report of themselves. */
  readonly shown?: ShownParts
  /** What they add to the stream of events. */
  readonly followed?: FollowedParts
  /** Add the paths of other modules. */
  readonly plugins?: readonly ServerPlugin[]
  readonly metrics?: MetricsPage
  /** What bodies and unsent answers count in; one of its own when not given. */
  readonly account?: Account
  /** Creates the pages for people; none when not given. */
  readonly people?: (tools: PeopleTools) => PeoplePages
}

/** The serving side of the program. */
export interface MirrorServer {
  /** Throws `config` when the address cannot be used. */
  listen(): Promise<ServerAddress>
  /** Serves the newest snapshots from now on. Commits are also noticed without it, within a second. */
  snapshotChanged(): void
  /** Stops accepting, lets requests in flight finish, and cuts off what is left after the grace time. */
  close(): Promise<void>
  /** Resolves with true when the serving thread answers its own health page, and listens. */
  answers(): Promise<boolean>
  /** Returns null while not listening. */
  address(): ServerAddress | null
  /** Reads the certificate again now; without TLS it does nothing. */
  reload(): void
}

const CLOSE_GRACE_MS = 10_000

/** The read-only API: upstream's public and private paths, and the mirror's own under /-/. */
export function createServer(options: ServerOptions): MirrorServer {
  const { reads, dataDir, config, log, now, followed = {}, closeGraceMs = CLOSE_GRACE_MS } = options
  const served = createServedSnapshot(options, createStaleRule(config, now))
  const failures = createFailures(dataDir, log, options.onUnreadable)
  const ends = createEnds()
  const state = { closing: false }
  const segments = createSegmentJoiner()
  const counts = countsOf(options, (request) => privateSide.access.hasKey(request))
  const app = createApp({
    failures,
    rewrite: segments.join,
    joinSegments: segments.add,
    createHttpServer(routes) {
      const handler = withReserve(inFrontOf(routes, failures, state))
      return createHttp(observed(options, handler), config.server, { log, counts, ...ends })
    },
  })
  const privateSide = createPrivateSide({ ...options, listeningOn: () => boundAddress(app.server.address()) })
  const reading = openReading(options, served, ends.add)
  const reports = createStatusReports({ ...options, ...options.shown, look: () => follower.look() })
  const moved: (() => void)[] = []
  const tools: ServerTools = {
    ...publicTools(options),
    ...privateSide,
    config,
    dataDir,
    log,
    now,
    served,
    failures,
    reading,
    reports,
    follow: (refresh) => void moved.push(refresh),
    atEnd: ends.add,
  }
  const followers = createFollowerRoutes({ ...options, ...privateSide, ...counts, served, reading, followed })
  addRoutes(app, options, tools, followers.plugin)
  const others = { refresh: () => moved.forEach((one) => one()) }
  const follower = followAll(options, [served, others], [followers, privateSide.access, createDecisionLog(reads, log)])
  const connections = openConnections(app.server, { ...options, ...counts, ...tools, closeGraceMs })
  const listening = createListening(app, config.server)
  return {
    ...listening,
    async listen() {
      const address = await listening.listen()
      privateSide.access.announce()
      follower.look()
      return address
    },
    snapshotChanged: follower.look,
    async close() {
      state.closing = true
      follower.stop()
      followers.close()
      await connections.close(app.close())
      await ends.close([served])
    },
    reload: () => ends.certificates.forEach((one) => one.renew()),
  }
}

/** What public answers are made with. */
function publicTools({ config, reads }: ServerOptions): Pick<ServerTools, 'paths' | 'edge' | 'publicHeads'> {
  const isStoredFeed = (path: string): boolean => reads.pinned.feeds.hasDocument(path)
  const edge = createEdgeFields(config.edge)
  return {
    paths: createPaths(config.feeds.extraPaths, isStoredFeed),
    edge,
    publicHeads: createHeads(PUBLIC_CACHING, edge.of),
  }
}

/** Adds the hooks that all requests pass, and the routes: those of the server itself, then those that the daemon passes (daemon/agent.ts), the catalog among them. */
function addRoutes(
  app: FastifyInstance,
  options: ServerOptions,
  tools: ServerTools,
  followers: FastifyPluginCallback,
): void {
  const { failures, config, paths, reports, baseUrl } = tools
  const { publicUrl, strictParameters: strict } = config.server
  const people = options.people?.(tools)
  app.addHook('onRequest', createQueryHook({ strict, failures, people }))
  app.addHook('onRequest', createPrivateHook(tools))
  app.register(feedRoutes, tools)
  app.register(statusRoutes, { ...options, ...options.shown, paths, reports, people })
  app.register(followers)
  app.register(contractRoutes, {
    version: options.version,
    paths,
    baseUrl,
    reads: options.reads.pinned,
    publicUrl,
    people,
  })
  app.register(sbomRoute)
  for (const plugin of options.plugins ?? []) app.register(plugin, tools)
  if (people !== undefined) app.register(peopleRoutes(people))
  app.register((last, _options, done) => {
    last.answerRest(createPrivateRest(app, tools))
    done()
  })
}

/** What comes before the router. Whatever is thrown ends as the answer: an error that is not caught would end the process. */
function inFrontOf(routes: HttpHandler, { answer }: Failures, state: { readonly closing: boolean }): HttpHandler {
  return (request, response) => {
    try {
      if (state.closing) response.setHeader('Connection', 'close')
      if (request.url?.startsWith('/') === false) request.url = originForm(request.url)
      if (isPath(request)) routes(request, response)
      else answer(notPath(), request, response)
    } catch (error) {
      answer(error, request, response)
    }
  }
}

/** Moves parts to the newest snapshot, and then has others look: every change that they announce is readable by then. */
function followAll(
  { log, onUnreadable }: ServerOptions,
  parts: readonly { refresh(): void }[],
  lookers: readonly { look(): void }[],
): SnapshotWatcher {
  const refresh = (): void => {
    for (const part of parts) part.refresh()
    for (const one of lookers) one.look()
  }
  return followStore({ refresh }, log, onUnreadable)
}

/** What bodies and answers of the server's port count in, and by whom. */
function countsOf(
  { account = createAccount(), config }: ServerOptions,
  hasKey: PrivateSide['access']['hasKey'],
): ResponseAccount {
  return { account, holderOf: createHolders(createTrust(config.server.trustProxy), hasKey) }
}

/** What ends with the server, and the certificates that it follows until then. */
function createEnds() {
  const all: (() => Promise<void>)[] = []
  return {
    certificates: [] as CertificateFollower[],
    add: (close: () => Promise<void>): void => void all.push(close),
    async close(parts: readonly { close(): void }[]): Promise<void> {
      await Promise.all(all.map((close) => close()))
      for (const part of parts) part.close()
    },
  }
}

/** What the connections of the server's port are served with. */
interface ConnectionParts {
  readonly config: Config
  readonly log: ServerLog | null
  readonly metrics?: MetricsPage
  readonly served: ServedRecords
  readonly publicHeads: Heads
  readonly closeGraceMs: number
  readonly account: Account
}

/** Connections beyond `server.maxConnections` that get the health page, so that an orchestrator does not end a busy mirror. */
const RESERVE = 16

/** Opens the fast path of a server, and limits its connections. */
function openConnections(server: Server, parts: ConnectionParts) {
  const { config, log, metrics, served, publicHeads, closeGraceMs } = parts
  const isFast = (): boolean => !config.log.access && log?.isLevelEnabled('debug') !== true
  const fastPath = openFastRecords(server, served, publicHeads, {
    keepAliveSeconds: config.server.keepAliveSeconds,
    isEnabled: isFast,
    event: config.server.certFile === null ? 'connection' : 'secureConnection',
    takes: (socket) => !isReserved(socket),
    account: parts.account,
    onAnswered: (seconds) => metrics?.countAnswer('public', 200, seconds),
  })
  const limit = limitConnections(server, limitsOf(parts))
  return {
    /** Lets them end; resolves with `closed`, when all are. After the grace time those that are left are cut off. */
    close(closed: Promise<unknown>): Promise<void> {
      fastPath.close()
      return drain(server, limit, closed, closeGraceMs)
    },
  }
}

function limitsOf({ config, log, metrics }: ConnectionParts): Parameters<typeof limitConnections>[1] {
  return {
    get most() {
      return config.server.maxConnections
    },
    get mostPerAddress() {
      return config.server.maxConnectionsPerAddress
    },
    reserve: RESERVE,
    isShared: createTrust(config.server.trustProxy),
    log,
    onClosed: (why, count) => metrics?.countClosed(why, count),
  }
}

/** The log and the counters of requests. */
interface Observers {
  readonly config: Config
  readonly log: ServerLog | null
  readonly now: () => number
  readonly metrics?: MetricsPage
}

/** The handler with what is counted and logged of each request. */
function observed(options: Observers, handler: HttpHandler): HttpHandler {
  const { log, now, metrics } = options
  const seen = withRequestLog(options, warnOfProxy(options, handler))
  return counted(traced(seen, log, now), metrics)
}

/** The handler, and each of its answers counted when it has been sent or cut off. */
function counted(handler: HttpHandler, metrics: MetricsPage | undefined): HttpHandler {
  if (metrics === undefined) return handler
  return (request, response) => {
    const started = performance.now()
    const surface = metricSurface(request.url ?? '')
    response.once('close', () => {
      metrics.countAnswer(surface, response.statusCode, (performance.now() - started) / 1000)
    })
    handler(request, response)
  }
}

/** Logs once that forwarding headers are ignored because no setting trusts the proxy. */
function warnOfProxy({ config, log }: Observers, handler: HttpHandler): HttpHandler {
  let isLogged = config.server.trustProxy.length > 0
  return (request, response) => {
    const name = isLogged ? undefined : FORWARDING.find((one) => request.headers[one] !== undefined)
    if (name !== undefined) {
      isLogged = true
      const why = `a request has the header ${name}, which is ignored: server.trustProxy is not set`
      log?.warn({}, `${why}. Behind a reverse proxy set it to the proxy's address.`)
    }
    handler(request, response)
  }
}

const FORWARDING = [
  'forwarded',
  'x-forwarded-for',
  'x-forwarded-host',
  'x-forwarded-proto',
  'x-forwarded-prefix',
] as const
