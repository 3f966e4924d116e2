import Fastify, { type FastifyInstance, type FastifyReply } from 'fastify'
import type { Server } from 'node:http'
import type { Config } from '../../config/schema.ts'
import type { SourceName } from '../../domain/sources.ts'
import { servedSources } from '../../domain/sources.ts'
import type { PinnedReads } from '../../store/reads.ts'
import { type HttpHandler, refuseMalformed } from '../http/node-server.ts'
import { INSTANCE_HEADER, OWN, type Paths } from '../http/paths.ts'
import {
  type Failures,
  type Problem,
  methodNotAllowed,
  pathNotFound,
  problemBody,
  problemHeaders,
} from '../http/problems.ts'
import type { ViewsMaker } from '../scanners/generation.ts'
import type { BoxesStatus, WebhooksReport } from '../../domain/status.ts'
import { openStatus } from './open-report.ts'
import { judgeReadiness } from './readiness.ts'
import { type SourceStatus, type Status, type StatusOptions, buildStatus } from './report.ts'

/** What the mirror's own pages are made from. */
interface PageOptions extends Omit<StatusOptions, 'reads' | 'active'> {
  readonly reads: PinnedReads
  readonly config: Config
  readonly paths: Paths
  readonly webhooks?: () => Promise<WebhooksReport>
  readonly metrics?: MetricsPage
  readonly viewsMaker?: Pick<ViewsMaker, 'report'>
  readonly boxes?: () => BoxesStatus
}

/** Makes the page for Prometheus from the report. */
export interface MetricsPage {
  readonly contentType: string
  /** Counts connections that were closed or refused for want of places. */
  readonly countClosed: (why: string, count: number) => void
  readonly render: (figures: {
    sources: readonly (Pick<
      SourceStatus,
      'name' | 'state' | 'ageSeconds' | 'records' | 'partialListCount'
    > & {
      readonly lastRunSeconds: number | null
    })[]
    inbox: WebhooksReport['counts']
    refresh: WebhooksReport['refresh'] | null
    relay: Status['relay']
    bundle: Status['bundle']
    views: NonNullable<Status['views']>
    boxes?: BoxesStatus
    storage: Status['storage']
  }) => Promise<string>
}

/** Fastify around a server of our making; every error it can meet has the form of ours. */
export function createApp(failures: Failures, createHttpServer: (pages: HttpHandler) => Server) {
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

/** Adds the mirror's own pages, and the answers for every unknown path and method. */
export function addPages(app: FastifyInstance, options: PageOptions): void {
  const { version, config, paths } = options
  const { live } = options.reads
  const served = (): SourceName[] =>
    servedSources(config, (source) => live.snapshots.readSnapshot(source) !== null)
  const servedId = (source: SourceName): string | null =>
    options.reads.pinned.snapshots.readSnapshot(source)?.id ?? null
  const status = onceASecond(
    () => openStatus(buildStatus({ ...options, active: served(), reads: live, servedId })),
    options.now,
  )
  const pages = new Set(['/', ...OWN])
  const pathOf = (url: string): string => url.split('?', 1)[0] ?? ''
  const notFound = (url: string): Problem => pathNotFound(pathOf(url))
  app.addHook('onRequest', (request, reply, done) => {
    // Before the body is read: a 404 route would parse it first.
    const { method, url, is404 } = request
    if (!is404 || method === 'GET' || method === 'HEAD') done()
    else void send(reply, pages.has(pathOf(url)) ? methodNotAllowed(method) : notFound(url))
  })
  app.setNotFoundHandler((request, reply) => send(reply, notFound(request.url)))
  app.get('/', (_request, reply) =>
    page(reply, 200, { name: 'patchmirror', version, mirrored: paths.all, own: OWN }),
  )
  app.get('/-/health', (_request, reply) => {
    // By it, "patchmirror health" knows the mirror of its own data folder.
    if (options.instance !== undefined) reply.header(INSTANCE_HEADER, options.instance)
    return page(reply, 200, { status: 'ok' })
  })
  app.get('/-/status', async (_request, reply) =>
    page(reply, 200, await withNow(status(), options)),
  )
  addMetrics(app, options, status)
  app.get('/-/ready', (_request, reply) => {
    const readiness = judgeReadiness(status(), config, served())
    if (!readiness.ready) reply.header('Retry-After', '30')
    return page(reply, readiness.ready ? 200 : 503, readiness)
  })
}

/** Returns the report with the current state of webhooks, views, outbox and inbox. */
async function withNow(
  status: Status,
  { webhooks, viewsMaker, boxes }: PageOptions,
): Promise<Status> {
  return {
    ...status,
    ...(webhooks && { webhooks: await webhooks() }),
    ...(viewsMaker && { views: viewsMaker.report() }),
    ...(boxes && { boxes: boxes() }),
  }
}

function addMetrics(app: FastifyInstance, options: PageOptions, status: () => Status): void {
  const { metrics } = options
  if (metrics === undefined) return
  app.get('/-/metrics', async (_request, reply) => {
    const {
      sources,
      storage,
      webhooks,
      relay,
      bundle,
      views = [],
      boxes,
    } = await withNow(status(), options)
    const figures = sources.map((source) => ({ ...source, lastRunSeconds: lasted(source) }))
    const { counts: inbox = null, refresh = null } = webhooks ?? {}
    const shown = { sources: figures, storage, inbox, refresh, relay, bundle, views }
    const text = await metrics.render(boxes === undefined ? shown : { ...shown, boxes })
    return reply
      .header('Cache-Control', 'no-store')
      .header('Content-Type', metrics.contentType)
      .send(text)
  })
}

function lasted({ lastRun }: SourceStatus): number | null {
  if (lastRun === null || lastRun.endedAt === null) return null
  return (Date.parse(lastRun.endedAt) - Date.parse(lastRun.startedAt)) / 1000
}

/** A report is made once a second at most, however often it is asked for. */
function onceASecond<T>(make: () => T, now: () => number): () => T {
  let cached: { readonly value: T; readonly at: number } | null = null
  return () => {
    const at = now()
    if (cached === null || Math.abs(at - cached.at) >= 1000) cached = { value: make(), at }
    return cached.value
  }
}

function page(reply: FastifyReply, code: number, body: object): FastifyReply {
  return reply.code(code).header('Cache-Control', 'no-store').send(body)
}

function send(reply: FastifyReply, problem: Problem): FastifyReply {
  return reply.code(problem.status).headers(problemHeaders(problem)).send(problemBody(problem))
}
