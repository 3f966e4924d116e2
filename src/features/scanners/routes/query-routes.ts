import type { IncomingMessage, ServerResponse } from 'node:http'
import { type RequestFault, bodyTimeMs, readRequestBody } from '../../../base/connections/bodies.ts'
import { holderFor, shareFor } from '../../../base/connections/responses.ts'
import { MirrorError } from '../../../base/errors.ts'
import type { QuerySource } from '../records/search.ts'
import type { Views, ViewRecord } from '../store/reads.ts'
import type { Failures } from '../../../server/http/problems.ts'
import { type Heads, contentTag, respond } from '../../../server/http/response.ts'
import { readRequestHeaders } from '../../../server/http/request-headers.ts'
import { refuseStale } from '../../../server/snapshot/stale.ts'
import type { SnapshotOrigin } from '../../../server/http/origin.ts'
import { sendOsvAnswer, sendStatus } from './query-answers.ts'
import { type QueryOperation, evaluate } from './query-evaluate.ts'
import { type ApiViews, apiSourceOf } from './query-source.ts'
import { type BodyViews, oneBodyOf } from './one-body.ts'
import { QUERY_API } from './paths.ts'
import type { MissingRecord } from '../../../server/lookup/missing-record.ts'
import { readTarget } from '../../../server/http/request-target.ts'
import { type FairQueue, createFairQueue } from '../../../base/pacing.ts'
import { type OriginViews, derivedHead, findOtherViewRecord, viewRecordContent } from './generation.ts'
import type { HttpHandler } from '../../../base/connections/server.ts'

const RECORDS = `${QUERY_API}vulns/`
const BODY_BYTES = 4 * 1024 * 1024

/** What of a generation of views is asked. */
export type QueryViews = RecordViews & OriginViews & ApiViews

/** What the query API answers from. */
export interface OsvQueryOptions {
  /** The generation in use: a search restarts with the next one when its own was closed. */
  readonly views: {
    /** Throws `not_ready` before the first. */
    current(): QueryViews
    /** Has damage taken care of; passes the value and the error on. */
    read<T>(use: (views: QueryViews) => T): T
  }
  readonly originOf: (views: QueryViews) => SnapshotOrigin
  /** Why a record is not here that upstream lists, or may list; null: it does not. */
  readonly missing: (id: string) => MissingRecord | null
  /** Why records of an ecosystem are not mirrored here; null: they are. */
  readonly leftOut: (ecosystem: string) => string | null
  /** False where the settings leave it out: every path is a 404 that names the setting. */
  readonly enabled: boolean
  readonly heads: Heads
  readonly failures: Failures
  readonly now: () => number
  /** Time in which more than so many bytes of a body must have come, milliseconds; `bodyTimeMs` when not given. */
  readonly bodyTimeOf?: (received: number) => number
}

/**
 * osv.dev's query API: `query`, `querybatch` and `vulns/{id}`, for requests whose path begins with `QUERY_API`, or lacks its base. It takes
 * no key.
 */
export function createOsvQuery(options: OsvQueryOptions): HttpHandler {
  const { views, failures, heads, originOf, enabled, missing } = options
  const queue = createFairQueue()
  const answer = async (request: IncomingMessage, response: ServerResponse): Promise<void> => {
    const { path } = readTarget(request.url ?? '')
    const operation = path.slice(QUERY_API.length)
    if (!path.startsWith(QUERY_API)) return sendStatus(request, response, { status: 404, message: misplaced(path) })
    if (!enabled) return sendStatus(request, response, { status: 404, message: SWITCHED_OFF })
    if (path.startsWith(RECORDS) && path.length > RECORDS.length) {
      if (request.method !== 'GET' && request.method !== 'HEAD') return refuseMethod(request, response, 'GET, HEAD')
      return views.read((current) => {
        const origin = refuseStale(originOf(current))
        const call = { request, response, origin, heads, missing }
        answerOsvRecord(current, path.slice(RECORDS.length), call)
      })
    }
    if (operation !== 'query' && operation !== 'querybatch')
      return sendStatus(request, response, { status: 404, message: `There is no ${path} here.` })
    if (request.method !== 'POST') return refuseMethod(request, response, 'POST')
    await answerQuery(options, queue, operation, request, response)
  }
  return (request, response) => {
    answer(request, response).catch((error: unknown) => {
      const left = error instanceof MirrorError && error.code === 'aborted'
      if (response.headersSent || left) response.destroy()
      else sendStatus(request, response, { origin: knownOrigin(options), ...failures.problem(error, request) })
    })
  }
}

/** Returns the origin of the views in use; null before the first. */
function knownOrigin({ views, originOf }: OsvQueryOptions): SnapshotOrigin | null {
  try {
    return originOf(views.current())
  } catch {
    return null
  }
}

function misplaced(path: string): string {
  const shown = path.slice(0, MAX_ID)
  return `There is no ${shown} here: the query API of this mirror is below /osv/. Set the client's base URL to that, with the slash at its end.`
}

const SWITCHED_OFF = 'This mirror answers no queries: views.serve has no query.'

async function answerQuery(
  { views, originOf, now, leftOut, bodyTimeOf: timeOf = bodyTimeMs }: OsvQueryOptions,
  queue: FairQueue,
  operation: QueryOperation,
  request: IncomingMessage,
  response: ServerResponse,
): Promise<void> {
  refuseStale(originOf(views.current()))
  const share = shareFor(response)
  const body = await readRequestBody(request, { bytes: BODY_BYTES, share, timeOf })
  if (typeof body === 'string') return refuseBody(body, request, response)
  const isGone = (): boolean => response.destroyed
  const address = holderFor(response).address()
  const turns = { next: () => queue.next(address) }
  const state = { isCrowded: false }
  share.queues(() => void (state.isCrowded = true)) // the searches take turns, so each can make room
  const isCrowded = (): boolean => state.isCrowded
  const { generation, value } = await withOneGeneration(views, (source) =>
    evaluate(operation, body, { source, leftOut, turns, now, isGone, share, isCrowded }),
  )
  const exchange = { request, response, requestHeaders: readRequestHeaders(request.rawHeaders) }
  await sendOsvAnswer(exchange, value, originOf(generation))
}

/**
 * Does the work with one generation of views from its beginning to its end. When the generation was replaced
 * meanwhile and can no longer be read, the work is repeated with the new one.
 */
async function withOneGeneration<Value>(
  views: OsvQueryOptions['views'],
  work: (source: QuerySource) => Promise<Value>,
): Promise<{ generation: QueryViews; value: Value }> {
  for (;;) {
    const generation = views.current()
    try {
      return { generation, value: await work(apiSourceOf(generation)) }
    } catch (error) {
      const asked = error instanceof MirrorError && ['bad_request', 'aborted'].includes(error.code)
      if (asked || views.current() === generation) return views.read(() => rethrow(error))
    }
  }
}

function rethrow(error: unknown): never {
  throw error
}

function refuseMethod(request: IncomingMessage, response: ServerResponse, allow: string): void {
  const message = `${request.method ?? ''} is not allowed here.`
  sendStatus(request, response, { status: 405, message, headers: { Allow: allow } })
}

const FAULTS: Readonly<Record<Exclude<RequestFault, 'gone'>, readonly [number, string]>> = {
  too_large: [413, `The request is larger than ${BODY_BYTES / 1024 ** 2} MiB.`],
  late: [408, 'The request did not come in time.'],
  crowded: [503, 'Too many requests and answers wait: try again later.'],
  encoded: [415, 'The request has a Content-Encoding: send it as it is.'],
}

function refuseBody(fault: RequestFault, request: IncomingMessage, response: ServerResponse): void {
  if (fault === 'gone') {
    response.destroy()
    return
  }
  const [status, message] = FAULTS[fault]
  sendStatus(request, response, { status, message })
}

/** Longest id that is looked up, as at osv.dev. */
const MAX_ID = 100

/** What of a generation of views is asked. */
type RecordViews = BodyViews & Pick<Views, 'info' | 'listAliasIds' | 'listUntidyIds' | 'readUpstreamRecord'>

/** `vulns/{id}`: the one body of a record, with validators. `id` is decoded. */
function answerOsvRecord(
  views: RecordViews,
  id: string,
  { request, response, origin, heads, missing }: RecordCall,
): void {
  if (id.length > MAX_ID) return sendStatus(request, response, { status: 400, message: 'ID too long', origin })
  const read = (one: string): ViewRecord | null => views.readUpstreamRecord(one)
  const own = read(id)
  const found = own === null ? findOtherViewRecord(views, [id], read) : { id, record: own }
  if (found === null) {
    const { kind, message = notFound(views.listAliasIds(id, '', MOST_NAMING)) } = missing(id) ?? {}
    return sendStatus(request, response, { status: kind === 'failed' ? 503 : 404, message, origin })
  }
  const requestHeaders = readRequestHeaders(request.rawHeaders)
  const content = { ...bodyContent(views, found), origin }
  respond({ request, response, requestHeaders }, content, heads)
}

/** Records that are named where none has an id. */
const MOST_NAMING = 10

/** `naming`: records that have the id among their other ones. */
function notFound(naming: readonly string[]): string {
  return naming.length === 0 ? 'Bug not found.' : `Bug not found, but these records name it: ${naming.join(', ')}.`
}

/** The one body as content of an answer; its tag follows from its bytes alone. */
function bodyContent(views: RecordViews, { id, record }: { id: string; record: ViewRecord }) {
  const body = oneBodyOf(views, id, record.content)
  if (body === null) return viewRecordContent(record, views)
  const { content } = body
  const { changed } = views.info
  return { body: content, tag: contentTag(content), changed, more: derivedHead(body) }
}

/** The request that a record is the answer to. */
interface RecordCall {
  readonly request: IncomingMessage
  readonly response: ServerResponse
  readonly origin: SnapshotOrigin
  readonly heads: Heads
  readonly missing: OsvQueryOptions['missing']
}
