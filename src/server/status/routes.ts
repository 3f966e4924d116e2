import type { FastifyInstance, FastifyPluginCallback, FastifyReply } from 'fastify'
import type { StatusAnswer } from '../../base/reports/status.ts'
import { folderBytes } from '../../store/disk-state.ts'
import { INSTANCE_HEADER, type Paths } from '../http/paths.ts'
import type { PeoplePages } from '../people.ts'
import { leaderPage } from './fleet.ts'
import { judgeReadiness } from './readiness.ts'
import type { ReportOptions, Reports } from './reports.ts'
import { pageAnswer, problems, uncached } from '../contract/answers.ts'
import { KEY_OR_NONE, headersOf } from '../contract/components.ts'
import type { PathOperation } from '../contract/openapi.ts'
import { schemaOf } from '../contract/schema-ref.ts'

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
  app.get('/', { schema: CONTRACTS['/'] }, (request, reply) => {
    if (people?.answer(request.raw, reply.raw) === true) return reply.hijack()
    reply.header('Vary', 'Accept') // a browser gets a page for people here
    return page(reply, 200, {
      name: 'patchmirror',
      version,
      mirrored: [...paths.all, ...app.listed().mirrored],
      own: app.listed().own,
    })
  })
  app.get('/-/health', { schema: CONTRACTS['/-/health'], config: MONITORED }, (_request, reply) => {
    // By it, "patchmirror status --live" knows the mirror of its own data folder.
    if (options.instance !== undefined) reply.header(INSTANCE_HEADER, options.instance)
    return page(reply, 200, { status: 'ok' })
  })
  app.get('/-/ready', { schema: CONTRACTS['/-/ready'], config: MONITORED }, (_request, reply) => {
    const readiness = readinessNow(options)
    if (!readiness.ready) reply.header('Retry-After', '30')
    return page(reply, readiness.ready ? 200 : 503, readiness)
  })
  app.get('/-/leader', { schema: CONTRACTS['/-/leader'], config: MONITORED }, (_request, reply) => {
    const body = leaderPage(options.fleet?.())
    if (!body.leader) reply.header('Retry-After', '30')
    return page(reply, body.leader ? 200 : 503, body)
  })
  app.get('/-/status', { schema: CONTRACTS['/-/status'], config: { listed: 'own' } }, async (_request, reply) => {
    const status = await reports.withNow(reports.open())
    const answer: StatusAnswer = { ...status, problems: reports.problems(status) }
    return page(reply, 200, answer)
  })
  addMetrics(app, options)
  done()
}

/** Monitors may add a parameter, such as the time. Nothing in these answers can be selected. */
const MONITORED = { takesAnyQuery: true, listed: 'own' } as const

function readinessNow({ reports, config, fleet, views, now }: StatusPageOptions) {
  const status = { ...reports.open(), views: views?.() ?? [], ...(fleet && { fleet: fleet() }) }
  return judgeReadiness(status, config, reports.served(), now())
}

function addMetrics(app: FastifyInstance, options: StatusPageOptions): void {
  const { metrics, reports, dataDir } = options
  if (metrics === undefined) return
  app.get('/-/metrics', { schema: CONTRACTS['/-/metrics'], config: { listed: 'own' } }, async (_request, reply) => {
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

const TAGS = ['Mirror']
const TEXT = { type: 'string' }

function reportContract(summary: string, schema: object): PathOperation {
  return {
    summary,
    tags: TAGS,
    responses: {
      200: uncached('The report.', { ...schema }),
      ...problems('message', 400, 500, 503),
    },
  }
}

const ROOT = {
  type: 'object',
  required: ['name', 'version', 'mirrored', 'own'],
  properties: {
    name: { const: 'patchmirror' },
    version: TEXT,
    mirrored: { type: 'array', items: TEXT },
    own: { type: 'array', items: TEXT },
  },
}

/** What the mirror says of itself. */
const CONTRACTS = {
  '/': {
    summary: 'Name, version and paths; the overview as HTML',
    tags: TAGS,
    responses: {
      200: {
        ...pageAnswer('The paths, or the page.'),
        content: {
          'application/json': { schema: ROOT },
          'text/html': { schema: TEXT },
        },
      },
      401: pageAnswer('Of the page: the key is not valid.', ['WWW-Authenticate']),
      ...problems('message', 500, 503),
    },
    security: KEY_OR_NONE,
  },
  '/-/health': {
    summary: 'Whether the process answers',
    tags: TAGS,
    responses: {
      200: uncached('It does.', { type: 'object', properties: { status: { const: 'ok' } } }, ['X-Mirror-Instance']),
      ...problems('message', 500),
    },
  },
  '/-/ready': {
    summary: 'Whether every source is served and recent enough',
    tags: TAGS,
    responses: {
      200: uncached('Ready.', schemaOf('Readiness')),
      503: uncached(
        'Not ready, or the report cannot be made.',
        { anyOf: [schemaOf('Readiness'), schemaOf('Problem')] },
        ['Retry-After'],
      ),
      ...problems('message', 500),
    },
  },
  '/-/leader': {
    summary: 'Whether this mirror leads its fleet',
    description: 'A mirror without a fleet answers 200.',
    tags: TAGS,
    responses: {
      200: uncached('It leads: it syncs and publishes.', schemaOf('Leader')),
      503: uncached('Another mirror leads, or none.', { anyOf: [schemaOf('Leader'), schemaOf('Problem')] }, [
        'Retry-After',
      ]),
      ...problems('message', 500),
    },
  },
  '/-/status': reportContract('State of every part of the mirror', schemaOf('Status')),
  '/-/metrics': {
    summary: 'Metrics for Prometheus',
    tags: TAGS,
    responses: {
      200: {
        description: 'See docs/reference/metrics.md.',
        headers: headersOf('Cache-Control'),
        content: { 'text/plain': { schema: TEXT } },
      },
      ...problems('message', 400, 404, 500, 503),
    },
  },
} as const satisfies Readonly<Record<string, PathOperation>>
