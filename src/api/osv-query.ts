import type { IncomingMessage, ServerResponse } from 'node:http'
import { MirrorError } from '../errors.ts'
import type { QuerySource } from '../query/search.ts'
import type { Views } from '../store/views.ts'
import { folderOf } from '../store/views-names.ts'
import { type BodyFault, readBody } from './body.ts'
import type { Failures } from './failure.ts'
import type { Heads } from './heads.ts'
import { chooseCoding } from './negotiate.ts'
import type { Origin } from './origin.ts'
import { sendOsvAnswer } from './osv-answers.ts'
import { type Operation, evaluate } from './osv-evaluate.ts'
import { type RecordViews, answerOsvRecord } from './osv-record.ts'
import { sendStatus } from './osv-status.ts'
import { notReady } from './problem.ts'
import { readTarget } from './target.ts'
import { type Turns, createTurns } from './turns.ts'
import { readWishes } from './wishes.ts'

/** Everything below is answered here, errors too in the form of osv.dev's API. */
export const QUERY_API = '/osv/v1/'

const RECORDS = `${QUERY_API}vulns/`
const BODY = { bytes: 4 * 1024 * 1024, timeoutMs: 30_000 }

/** What of a generation of views is asked. */
export type QueryViews = RecordViews & Pick<Views, 'listCandidates' | 'readViewRecord'>

/** What the query API answers from. */
export interface OsvQueryOptions {
  /** The generation that is served; null before the first. One may be closed as soon as this gives another. */
  readonly current: () => QueryViews | null
  readonly heads: Heads
  readonly failures: Failures
  readonly now: () => number
  /** Of bodies; 30 seconds when not given. */
  readonly bodyTimeoutMs?: number
}

/** Answers requests whose path begins with `QUERY_API`. */
export type OsvQuery = (request: IncomingMessage, response: ServerResponse) => void

/** osv.dev's query API: `query`, `querybatch` and `vulns/{id}`. It takes no key. */
export function createOsvQuery(options: OsvQueryOptions): OsvQuery {
  const { current, failures, heads } = options
  const turns = createTurns()
  const answer = async (request: IncomingMessage, response: ServerResponse): Promise<void> => {
    const { path } = readTarget(request.url ?? '')
    const operation = path.slice(QUERY_API.length)
    if (path.startsWith(RECORDS) && path.length > RECORDS.length) {
      if (request.method !== 'GET' && request.method !== 'HEAD')
        return refuseMethod(request, response, 'GET, HEAD')
      const views = ready(current())
      const call = { request, response, origin: originOf(views), heads }
      return answerOsvRecord(views, path.slice(RECORDS.length), call)
    }
    if (operation !== 'query' && operation !== 'querybatch')
      return sendStatus(request, response, { status: 404, message: `There is no ${path} here.` })
    if (request.method !== 'POST') return refuseMethod(request, response, 'POST')
    await answerQuery(options, turns, operation, request, response)
  }
  return (request, response) => {
    answer(request, response).catch((error: unknown) => {
      const left = error instanceof MirrorError && error.code === 'aborted'
      if (response.headersSent || left) response.destroy()
      else sendStatus(request, response, failures.problem(error, request))
    })
  }
}

async function answerQuery(
  { current, now, bodyTimeoutMs = BODY.timeoutMs }: OsvQueryOptions,
  turns: Turns,
  operation: Operation,
  request: IncomingMessage,
  response: ServerResponse,
): Promise<void> {
  ready(current())
  const body = await readBody(request, { bytes: BODY.bytes, timeoutMs: bodyTimeoutMs })
  if (typeof body === 'string') return refuseBody(body, request, response)
  const isGone = (): boolean => response.destroyed
  const { views, value } = await withOneGeneration(current, (source) =>
    evaluate(operation, body, { source, turns, now, isGone }),
  )
  const coding = chooseCoding(readWishes(request.rawHeaders).acceptEncoding)
  await sendOsvAnswer(response, value, coding, originOf(views))
}

/**
 * Does the work with one generation of views from its beginning to its end. When the generation gave way to another
 * meanwhile and could not be read any more, all is done anew with that one.
 */
async function withOneGeneration<Value>(
  current: OsvQueryOptions['current'],
  work: (source: QuerySource) => Promise<Value>,
): Promise<{ views: QueryViews; value: Value }> {
  for (;;) {
    const views = ready(current())
    try {
      return { views, value: await work(sourceOf(views)) }
    } catch (error) {
      const asked = error instanceof MirrorError && ['bad_request', 'aborted'].includes(error.code)
      if (asked || current() === views) throw error
    }
  }
}

function ready(views: QueryViews | null): QueryViews {
  if (views === null) throw notReady('the index of packages')
  return views
}

function sourceOf(views: QueryViews): QuerySource {
  return {
    listCandidates: views.listCandidates,
    readRecord: (ecosystem, id) => views.readViewRecord(folderOf(ecosystem), id),
  }
}

const origins = new WeakMap<QueryViews, Origin>()

/** Of the generation, not of what is synced meanwhile: the same object each time, for the heads made of it. */
function originOf(views: QueryViews): Origin {
  const known = origins.get(views)
  if (known !== undefined) return known
  const { snapshot, asOf } = views.info
  const origin = { snapshot, asOf: new Date(asOf).toISOString(), version: snapshot }
  origins.set(views, origin)
  return origin
}

function refuseMethod(request: IncomingMessage, response: ServerResponse, allow: string): void {
  const message = `${request.method ?? ''} is not allowed here.`
  sendStatus(request, response, { status: 405, message, headers: { Allow: allow } })
}

const FAULTS: Readonly<Record<Exclude<BodyFault, 'gone'>, readonly [number, string]>> = {
  too_large: [413, `The request is larger than ${BODY.bytes / 1024 ** 2} MiB.`],
  late: [408, 'The request did not come in time.'],
  encoded: [415, 'The request has a Content-Encoding: send it as it is.'],
}

function refuseBody(fault: BodyFault, request: IncomingMessage, response: ServerResponse): void {
  if (fault === 'gone') {
    response.destroy()
    return
  }
  const [status, message] = FAULTS[fault]
  sendStatus(request, response, { status, message })
}
