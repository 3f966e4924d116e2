import Fastify, { type FastifyInstance, type FastifyReply } from 'fastify'
import type { Server } from 'node:http'
import type { Config } from '../../config/schema.ts'
import { type SourceName, servedSources } from '../../base/domain/sources.ts'
import type { PinnedReads } from '../../store/reads.ts'
import { type HttpHandler, refuseMalformed } from '../http/node-server.ts'
import { INSTANCE_HEADER, LEADER_PATH, OWN, type Paths } from '../http/paths.ts'
import {
  type Failures,
  type Problem,
  methodNotAllowed,
  pathNotFound,
  problemBody,
  problemHeaders,
} from '../http/problems.ts'
import type { BoxesStatus, EdgeTargetStatus } from '../../base/reports/transfer.ts'
import type { FleetStatus } from '../../base/reports/fleet.ts'
import type { TagFindingsStatus, ViewsStatus } from '../../base/reports/scanners.ts'
import type { WebhooksReport } from '../../base/reports/webhooks.ts'
import { folderBytes } from '../../store/disk-state.ts'
import { leaderPage } from './fleet.ts'
import { openStatus } from './open-report.ts'
import { onceASecond } from './once-a-second.ts'
import { reportedProblem } from './problem.ts'
import type { ReportedProblem } from '../../base/reports/problems.ts'
import { problemsOf } from './problems.ts'
import { judgeReadiness } from './readiness.ts'
import { type StatusOptions, buildStatus, unreadStatus } from './report.ts'
import type { Status, StatusAnswer } from '../../base/reports/status.ts'

/** What reports on the mirror are made from. */
interface ReportOptions extends Omit<StatusOptions, 'reads' | 'active'> {
  readonly reads: PinnedReads
  readonly dataDir: string
  readonly config: Config
  /** Moves what is served to the newest snapshot: a report is never ahead of the answers. */
  readonly look?: () => void
  /** Notes an error of a read; true when it says that stored data cannot be read. */
  readonly onUnreadable?: (error: unknown) => boolean
  readonly webhooks?: () => Promise<WebhooksReport>
  readonly views?: () => readonly ViewsStatus[]
  readonly findings?: () => TagFindingsStatus
  readonly boxes?: () => BoxesStatus
  readonly fleet?: () => FleetStatus
  readonly edge?: () => readonly EdgeTargetStatus[]
}

/** Reports on the mirror, built once a second at most. */
export interface Reports {
  /** The sources that the mirror answers for. */
  readonly served: () => SourceName[]
  /** Without what only clients with a key may read. */
  readonly open: () => Status
  /** Everything, for clients with a key. */
  readonly all: () => Status
  /** Returns a report with the current state of webhooks, views, outbox and inbox. */
  readonly withNow: (status: Status) => Promise<Status>
  /** Returns everything that is wrong by such a report. */
  readonly problems: (status: Status) => readonly ReportedProblem[]
}

/** Creates the reports that the mirror's own pages show. */
export function createStatusReports(options: ReportOptions): Reports {
  const { config, reads } = options
  const isStored = (source: SourceName): boolean => reads.live.snapshots.readSnapshot(source) !== null
  const storedSources = (): SourceName[] => servedSources(config, isStored)
  const served = (): SourceName[] => readOr(options, storedSources, () => servedSources(config, () => false))
  const servedId = (source: SourceName): string | null => reads.pinned.snapshots.readSnapshot(source)?.id ?? null
  const status = { ...options, reads: reads.live, servedId }
  const build = (): Status => {
    options.look?.()
    return readOr(
      options,
      () => buildStatus({ ...status, active: storedSources() }),
      () => unreadStatus({ ...status, active: [] }),
    )
  }
  const all = onceASecond(build, options.now, () => options.fleet?.().served)
  let opened: { readonly from: Status; readonly status: Status } | null = null
  const open = (): Status => {
    const from = all()
    if (opened?.from !== from) opened = { from, status: openStatus(from) }
    return opened.status
  }
  return {
    served,
    open,
    all,
    withNow: (status) => withNow(status, options),
    problems: (status) => problemsOf(status, config, options.now()).map(reportedProblem),
  }
}

/** Returns what is read, or the other where stored data cannot be read: a report says so, and does not fail. */
function readOr<T>({ onUnreadable }: ReportOptions, read: () => T, other: () => T): T {
  try {
    return read()
  } catch (error) {
    if (onUnreadable?.(error) !== true) throw error
    return other()
  }
}

/** What the mirror's own pages are made from. */
interface PageOptions extends ReportOptions {
  readonly reports: Reports
  readonly paths: Paths
  readonly metrics?: MetricsPage
}

/** Makes the page for Prometheus from the report. */
export interface MetricsPage {
  readonly contentType: string
  /** Counts connections that were closed or refused for want of places. */
  readonly countClosed: (why: string, count: number) => void
  /** Counts an answer: the surface of its path, its status, and the seconds from the request to its end. */
  readonly countAnswer: (surface: string, code: number, seconds: number) => void
  readonly render: (figures: PageFigures) => Promise<string>
}

/** What the page for Prometheus shows besides what is counted: the report, and what it does not have. */
export interface PageFigures extends StatusAnswer {
  /** Whether /-/ready answers 200. */
  readonly ready: boolean
  /** Size of all files in the data folder; null where it cannot be read. */
  readonly dataBytes: number | null
}

/** Fastify around a server of our making; every error it can meet has the form of ours. */
export function createApp(failures: Failures, createHttpServer: (pages: HttpHandler) => Server) {
  const app = Fastify({
    serverFactory: createHttpServer,
    clientErrorHandler: refuseMalformed,
    return503OnClosing: false,
    // Named so that the compilers of schemas, 90 modules, are not loaded: no route has one.
    schemaController: { compilersFactory: { buildValidator: noSchema, buildSerializer: noSchema } },
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
  const { version, paths, reports } = options
  const pages = new Set<string>(['/', ...OWN])
  app.addHook('onRoute', ({ url }) => {
    if (!pages.has(url)) throw new Error(`${url} is not in the table of own pages`) // a defect, seen at start
  })
  const pathOf = (url: string): string => url.split('?', 1)[0] ?? ''
  const notFound = (url: string): Problem => pathNotFound(pathOf(url))
  app.addHook('onRequest', (request, reply, done) => {
    // Before the body is read: a 404 route would parse it first.
    const { method, url, is404 } = request
    if (!is404 || method === 'GET' || method === 'HEAD') done()
    else void send(reply, pages.has(pathOf(url)) ? methodNotAllowed(method) : notFound(url))
  })
  app.setNotFoundHandler((request, reply) => send(reply, notFound(request.url)))
  app.get('/', (_request, reply) => {
    reply.header('Vary', 'Accept') // a browser gets a page for people here
    return page(reply, 200, { name: 'patchmirror', version, mirrored: paths.all, own: OWN })
  })
  app.get('/-/health', (_request, reply) => {
    // By it, "patchmirror status --live" knows the mirror of its own data folder.
    if (options.instance !== undefined) reply.header(INSTANCE_HEADER, options.instance)
    return page(reply, 200, { status: 'ok' })
  })
  app.get('/-/status', async (_request, reply) => {
    const status = await reports.withNow(reports.open())
    const answer: StatusAnswer = { ...status, problems: reports.problems(status) }
    return page(reply, 200, answer)
  })
  addMetrics(app, options)
  app.get('/-/ready', (_request, reply) => {
    const readiness = readinessNow(options)
    if (!readiness.ready) reply.header('Retry-After', '30')
    return page(reply, readiness.ready ? 200 : 503, readiness)
  })
  app.get(LEADER_PATH, (_request, reply) => {
    const body = leaderPage(options.fleet?.())
    if (!body.leader) reply.header('Retry-After', '30')
    return page(reply, body.leader ? 200 : 503, body)
  })
}

/** Does the same for a report on webhooks, which is left out then: it compares events with the stored catalog. */
async function readWebhooks(options: ReportOptions): Promise<WebhooksReport | undefined> {
  try {
    return await options.webhooks?.()
  } catch (error) {
    if (options.onUnreadable?.(error) !== true) throw error
    return undefined
  }
}

async function withNow(status: Status, options: ReportOptions): Promise<Status> {
  const { views, findings, boxes, fleet, edge } = options
  const webhooks = await readWebhooks(options)
  return {
    ...status,
    ...(webhooks && { webhooks }),
    ...(views && { views: views() }),
    ...(findings && { findings: findings() }),
    ...(boxes && { boxes: boxes() }),
    ...(fleet && { fleet: fleet() }),
    ...(edge && { edge: edge() }),
  }
}

function readinessNow({ reports, config, fleet, views, now }: PageOptions) {
  const status = { ...reports.open(), views: views?.() ?? [], ...(fleet && { fleet: fleet() }) }
  return judgeReadiness(status, config, reports.served(), now())
}

function addMetrics(app: FastifyInstance, options: PageOptions): void {
  const { metrics, reports, dataDir } = options
  if (metrics === undefined) return
  app.get('/-/metrics', async (_request, reply) => {
    const status = await reports.withNow(reports.open())
    const text = await metrics.render({
      ...status,
      problems: reports.problems(status),
      ready: readinessNow(options).ready,
      dataBytes: await folderBytes(dataDir),
    })
    return reply.header('Cache-Control', 'no-store').header('Content-Type', metrics.contentType).send(text)
  })
}

function page(reply: FastifyReply, code: number, body: object): FastifyReply {
  return reply.code(code).header('Cache-Control', 'no-store').send(body)
}

function send(reply: FastifyReply, problem: Problem): FastifyReply {
  return reply.code(problem.status).headers(problemHeaders(problem)).send(problemBody(problem))
}

function noSchema(): never {
  throw new Error('a route has a schema, for which no compiler is loaded')
}
