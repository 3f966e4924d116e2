import type { Server } from 'node:http'
import Fastify, { type FastifyInstance, type FastifyReply } from 'fastify'
import type { Config } from '../config/schema.ts'
import { activeSources } from '../sources.ts'
import type { PinnedReads } from '../store/pinned.ts'
import type { SourceName } from '../store/runs.ts'
import { answerText } from './answer.ts'
import { type Failures, type ServerLog, createFailures } from './failure.ts'
import { followStore } from './follow.ts'
import { createHeads } from './heads.ts'
import { type Handler, createHttp, drain, refuseMalformed, traced } from './http.ts'
import { openFastLane } from './lane.ts'
import { type ServerAddress, addressOf, nameListenError } from './listen.ts'
import { createMirror } from './mirror.ts'
import { createMoment } from './moment.ts'
import { MIRRORED, type Paths, createPaths } from './paths.ts'
import {
  type Problem,
  methodNotAllowed,
  pathNotFound,
  problemBody,
  problemHeaders,
} from './problem.ts'
import { findRecord } from './records.ts'
import { buildStatus, judgeReadiness } from './status.ts'
import { originForm } from './target.ts'

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
}

/** The serving side of the program. */
export interface MirrorServer {
  /** Throws `config` when the address cannot be used. */
  listen(): Promise<ServerAddress>
  /** Serves the newest snapshots from now on. Commits are also noticed without it, within half a second. */
  snapshotChanged(): void
  /** Stops accepting, lets requests in flight finish, and cuts off what is left after the grace time. */
  close(): Promise<void>
  /** Null while not listening. */
  readonly address: ServerAddress | null
}

const CLOSE_GRACE_MS = 10_000
const BACKLOG = 1024

/** The read-only API: upstream's paths under /external/, the mirror's own under /-/. */
export function createServer(options: ServerOptions): MirrorServer {
  const { reads, dataDir, config, log, now, closeGraceMs = CLOSE_GRACE_MS } = options
  const { host, port, cacheBytes, cacheMaxAgeSeconds, keepAliveSeconds } = config.server
  const cacheControl = `public, max-age=${cacheMaxAgeSeconds}, must-revalidate`
  const paths = createPaths(config.feeds.extraPaths)
  const moment = createMoment(reads, dataDir, cacheBytes)
  const follower = followStore(moment, log)
  const failures = createFailures(dataDir, log)
  const heads = createHeads(cacheControl)
  const mirror = createMirror({ moment, paths, cacheControl, heads, onError: failures.answer })
  const state = { closing: false }
  const app = createApp(failures, (pages) => {
    const handler: Handler = (request, response) => {
      if (state.closing) response.setHeader('Connection', 'close')
      if (request.url?.startsWith('/') === false) request.url = originForm(request.url)
      if (request.url?.startsWith(MIRRORED) === true) mirror(request, response)
      else pages(request, response)
    }
    return createHttp(traced(handler, log, now), config.server)
  })
  addPages(app, options, paths)
  const lane = openFastLane(app.server, {
    find(target, coding) {
      const shared = heads(moment.originOf('osv'), coding)
      const answer = findRecord(moment, target, coding)
      return answer && { head: answerText(answer, shared), body: answer.body }
    },
    keepAliveSeconds,
    enabled: log?.isLevelEnabled('debug') !== true,
  })
  const address = (): ServerAddress | null => addressOf(app.server.address(), host)
  return {
    async listen() {
      await app.listen({ host, port, backlog: BACKLOG }).catch((error: unknown) => {
        throw nameListenError(error, host, port)
      })
      return address() ?? { url: '', port }
    },
    snapshotChanged: follower.look,
    async close() {
      state.closing = true
      follower.stop()
      await drain(app.server, lane, app.close(), closeGraceMs)
      moment.close()
    },
    get address() {
      return address()
    },
  }
}

/** Fastify around a server of our making; every error it can meet has the form of ours. */
function createApp(failures: Failures, createHttpServer: (pages: Handler) => Server) {
  const app = Fastify({
    serverFactory: createHttpServer,
    clientErrorHandler: refuseMalformed,
    return503OnClosing: false,
    frameworkErrors(_error, _request, reply) {
      // The router's only complaint here: a path that is not percent-encoded UTF-8.
      void send(reply, { status: 400, error: 'bad_request', message: 'the path cannot be decoded' })
    },
  })
  app.setErrorHandler((error, request, reply) => send(reply, failures.problem(error, request.raw)))
  return app
}

/** The mirror's own pages, and the answers for every path and method that nobody knows. */
function addPages(app: FastifyInstance, options: ServerOptions, paths: Paths): void {
  const { version, config } = options
  const active = activeSources(config)
  const status = onceASecond(
    () => buildStatus({ ...options, active, reads: options.reads.live }),
    options.now,
  )
  const own = ['/-/health', '/-/ready', '/-/status']
  app.addHook('onRequest', (request, reply, done) => {
    // Before the body is read: a 404 route would parse it first.
    if (request.is404 && !['GET', 'HEAD'].includes(request.method))
      void send(reply, methodNotAllowed(request.method))
    else done()
  })
  app.setNotFoundHandler((request, reply) => {
    const path = request.url.split('?', 1)[0] ?? ''
    return send(reply, pathNotFound(path, paths.closest(path)))
  })
  app.get('/', (_request, reply) =>
    page(reply, 200, { name: 'patchmirror', version, mirrored: paths.all, own }),
  )
  app.get('/-/health', (_request, reply) => page(reply, 200, { status: 'ok' }))
  app.get('/-/status', (_request, reply) => page(reply, 200, status()))
  app.get('/-/ready', (_request, reply) => {
    const readiness = judgeReadiness(status(), config, active)
    if (!readiness.ready) reply.header('Retry-After', '30')
    return page(reply, readiness.ready ? 200 : 503, readiness)
  })
}

/** A report is made once a second at most, however often it is asked for. */
function onceASecond<T>(make: () => T, now: () => number): () => T {
  let held: { readonly value: T; readonly at: number } | null = null
  return () => {
    const at = now()
    if (held === null || Math.abs(at - held.at) >= 1000) held = { value: make(), at }
    return held.value
  }
}

function page(reply: FastifyReply, code: number, body: object): FastifyReply {
  return reply.code(code).header('Cache-Control', 'no-store').send(body)
}

function send(reply: FastifyReply, problem: Problem): FastifyReply {
  return reply.code(problem.status).headers(problemHeaders(problem)).send(problemBody(problem))
}
