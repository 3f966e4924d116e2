import type { FastifyInstance, FastifyPluginCallback, FastifyReply } from 'fastify'
import type { StatusAnswer } from '../../base/reports/status.ts'
import { folderBytes } from '../../store/disk-state.ts'
import { STATUS_CONTRACTS } from '../contract/own-pages.ts'
import { INSTANCE_HEADER, LEADER_PATH, OWN, type Paths } from '../http/paths.ts'
import type { PeoplePages } from '../people.ts'
import { leaderPage } from './fleet.ts'
import { judgeReadiness } from './readiness.ts'
import type { ReportOptions, Reports } from './reports.ts'

/** What the mirror's own pages are made from. */
interface StatusPageOptions extends ReportOptions {
  readonly version: string
  readonly reports: Reports
  readonly paths: Paths
  readonly metrics?: MetricsPage
  /** Answers `/` for clients that prefer a page; none when not given. */
  readonly people?: PeoplePages | undefined
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

/** The mirror's own pages about itself. */
export const statusRoutes: FastifyPluginCallback<StatusPageOptions> = (app, options, done) => {
  const { version, paths, reports, people } = options
  app.get('/', { schema: STATUS_CONTRACTS['/'] }, (request, reply) => {
    if (people?.answer(request.raw, reply.raw) === true) return reply.hijack()
    reply.header('Vary', 'Accept') // a browser gets a page for people here
    return page(reply, 200, { name: 'patchmirror', version, mirrored: paths.all, own: OWN })
  })
  app.get('/-/health', { schema: STATUS_CONTRACTS['/-/health'], config: MONITORED }, (_request, reply) => {
    // By it, "patchmirror status --live" knows the mirror of its own data folder.
    if (options.instance !== undefined) reply.header(INSTANCE_HEADER, options.instance)
    return page(reply, 200, { status: 'ok' })
  })
  app.get('/-/status', { schema: STATUS_CONTRACTS['/-/status'] }, async (_request, reply) => {
    const status = await reports.withNow(reports.open())
    const answer: StatusAnswer = { ...status, problems: reports.problems(status) }
    return page(reply, 200, answer)
  })
  addMetrics(app, options)
  app.get('/-/ready', { schema: STATUS_CONTRACTS['/-/ready'], config: MONITORED }, (_request, reply) => {
    const readiness = readinessNow(options)
    if (!readiness.ready) reply.header('Retry-After', '30')
    return page(reply, readiness.ready ? 200 : 503, readiness)
  })
  app.get(LEADER_PATH, { schema: STATUS_CONTRACTS[LEADER_PATH], config: MONITORED }, (_request, reply) => {
    const body = leaderPage(options.fleet?.())
    if (!body.leader) reply.header('Retry-After', '30')
    return page(reply, body.leader ? 200 : 503, body)
  })
  done()
}

/** Monitors may add a parameter, such as the time. Nothing in these answers can be selected. */
const MONITORED = { takesAnyQuery: true }

function readinessNow({ reports, config, fleet, views, now }: StatusPageOptions) {
  const status = { ...reports.open(), views: views?.() ?? [], ...(fleet && { fleet: fleet() }) }
  return judgeReadiness(status, config, reports.served(), now())
}

function addMetrics(app: FastifyInstance, options: StatusPageOptions): void {
  const { metrics, reports, dataDir } = options
  if (metrics === undefined) return
  app.get('/-/metrics', { schema: STATUS_CONTRACTS['/-/metrics'] }, async (_request, reply) => {
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
