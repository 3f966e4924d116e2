import type { IncomingMessage, ServerResponse } from 'node:http'
import type { Config } from '../../config/schema.ts'
import { holderFor } from '../../base/connections/responses.ts'
import type { EdgeFields } from '../http/edge-fields.ts'
import { type Exchange, type Heads, sendAnswer } from '../http/response.ts'
import type { FeedAnswer } from '../snapshot/documents.ts'
import type { MirrorError } from '../../base/errors.ts'
import { type Failures, type Problem, methodNotAllowed, pathNotFound, sendProblem } from '../http/problems.ts'
import type { ServedSnapshot } from '../snapshot/served.ts'
import { chooseCoding, readRequestHeaders } from '../http/request-headers.ts'
import { otherParameters, readPatchFilter } from '../snapshot/patch-filter.ts'
import { type RequestTarget, ignoredField, readTarget, readablePath } from '../http/request-target.ts'
import { missingFeed, notReady, notSynced, scopeToCome } from '../snapshot/not-ready.ts'
import { type SnapshotOrigin, partFields } from '../http/origin.ts'
import {
  FEEDS_ROOT,
  FILTERED_FEEDS,
  OSV_ARCHIVE,
  OSV_INDEX,
  OSV_RECORD,
  OSV_ROOT,
  PUBLIC_FEEDS,
} from '../../base/domain/feed-paths.ts'
import { feedContract } from './contract.ts'
import { type ServerPlugin, below } from '../plugin.ts'
import { type Paths, recordId } from '../http/paths.ts'
import { findOtherRecord, findRecord, missingRecord, readRecordAnswer } from './osv.ts'
import { sendArchive } from '../http/zip.ts'
import type { HttpHandler } from '../../base/connections/server.ts'

/** What the mirrored paths are answered from. */
interface MirrorOptions {
  readonly config: Config
  readonly served: ServedSnapshot
  readonly paths: Paths
  readonly heads: Heads
  readonly edge: EdgeFields
  /** Answers a request whose handling threw, and logs what deserves it. */
  readonly onError: Failures['answer']
}

/** The routes of upstream's public feeds: its own ones, and below them whatever else is mirrored. */
export const feedRoutes: ServerPlugin = (app, { publicHeads, ...tools }, done) => {
  const answer = createMirror({ ...tools, heads: publicHeads, onError: tools.failures.answer })
  const handler = app.onNode(answer)
  for (const path of NAMED) app.get(path, { schema: feedContract(path) }, handler)
  app.get(`${OSV_ROOT}*`, { schema: feedContract(OSV_RECORD), config: { path: OSV_RECORD } }, handler)
  app.get(`${FEEDS_ROOT}*`, handler) // feeds that only the settings or an import name
  app.answerRest(below([FEEDS_ROOT], answer))
  done()
}

const NAMED = [OSV_INDEX, OSV_ARCHIVE, ...PUBLIC_FEEDS.map(({ path }) => path)]

/** Answers every request under /external/ with upstream's documents: a record in the cache costs one map look-up and one write. */
function createMirror(options: MirrorOptions): HttpHandler {
  const { served, heads, onError } = options
  const route = createRoutes(options)
  return (request, response) => {
    const { method = '', url = '' } = request
    const fail = (error: unknown): void => onError(error, request, response, { origin: originOrNone(options, url) })
    if (method !== 'GET' && method !== 'HEAD') {
      refuseMethod(options, request, response)
      return
    }
    try {
      const exchange = { request, response, requestHeaders: readRequestHeaders(request.rawHeaders) }
      const record = findRecord(served, url, chooseCoding(exchange.requestHeaders.acceptEncoding))
      if (record !== undefined) sendAnswer(exchange, record, served.originOf('osv'), heads)
      else route(exchange, url)?.catch(fail)
    } catch (error) {
      fail(error)
    }
  }
}

/** 405 where something is mirrored, 404 where nothing is, 400 where that cannot be known. */
function refuseMethod(options: MirrorOptions, request: IncomingMessage, response: ServerResponse) {
  const { paths, onError } = options
  const { method = '', url = '' } = request
  const origin = originAt(options, url)
  try {
    const { path } = readTarget(url)
    const known = paths.sourceOf(path) !== undefined || recordId(path) !== null
    const problem = known ? methodNotAllowed(method) : pathNotFound(path)
    sendProblem(request, response, { ...problem, origin: known ? origin : null })
  } catch (error) {
    onError(error, request, response, { origin })
  }
}

/** The same for an answer to an error, which may be that nothing can be read: null then too. */
function originOrNone(options: MirrorOptions, url: string): SnapshotOrigin | null {
  try {
    return originAt(options, url)
  } catch {
    return null // the error that is answered has the reason
  }
}

/** The origin of what is mirrored at a target, decodable or not; null where nothing is, or nothing yet. */
function originAt({ served, paths }: MirrorOptions, url: string): SnapshotOrigin | null {
  const path = readablePath(url)
  const source = paths.sourceOf(path) ?? (path.startsWith(OSV_ROOT) ? 'osv' : undefined)
  return source === undefined ? null : served.knownOrigin(source)
}

/** Answers a record by another form of its id; false when no record can be meant, or several. */
function sendOther(served: ServedSnapshot, heads: Heads, exchange: Exchange, url: string): boolean {
  const coding = chooseCoding(exchange.requestHeaders.acceptEncoding)
  const other = findOtherRecord(served, url, coding)
  if (other === null) return false
  sendAnswer(exchange, other.answer, served.originOf('osv'), heads, other.more)
  return true
}

function answerArchive({ served, edge }: Pick<MirrorOptions, 'served' | 'edge'>, exchange: Exchange): Promise<void> {
  const origin = served.originOf('osv')
  const info = served.reads.osv.readArchive()
  if (info === null) throw notReady(served.reads, 'osv', OSV_ARCHIVE)
  const archive = served.archives.current(info)
  return sendArchive(exchange, archive, origin, [...edge.of(origin), ...partFields(origin)])
}

type Route = (exchange: Exchange, url: string) => Promise<void> | undefined

function createRoutes(options: MirrorOptions): Route {
  const { served, paths, heads, config } = options
  const answerOther = (exchange: Exchange, url: string): boolean => sendOther(served, heads, exchange, url)

  const answerRecord = async (exchange: Exchange, id: string, url: string): Promise<void> => {
    const { request, response, requestHeaders } = exchange
    const origin = served.originOf('osv')
    const answer = readRecordAnswer(served.reads, id, chooseCoding(requestHeaders.acceptEncoding))
    if (answer !== null) return sendAnswer(exchange, answer, origin, heads)
    const problem = await missingRecord(served, id)
    // For a known id, such as a removed one, the reason is more useful than a similar id.
    const unknown = problem.status === 404 && problem.fields?.['removedAt'] === undefined
    if (unknown && answerOther(exchange, url)) return
    const isOutside = problem.fields?.['outOfScope'] !== undefined
    const changed = isOutside ? scopeToCome(served.reads, config, 'osv') : null
    if (changed !== null) throw notSynced('osv', id, changed)
    sendProblem(request, response, { ...problem, origin })
  }

  const answerDocument = (exchange: Exchange, path: string, query: string) => {
    const origin = served.originOf(paths.sourceOf(path) ?? 'feeds')
    const coding = chooseCoding(exchange.requestHeaders.acceptEncoding)
    const filter = FILTERED_FEEDS.has(path) && query !== '' ? readPatchFilter(query) : null
    const part = path === OSV_INDEX ? partFields(origin) : []
    const more = FILTERED_FEEDS.has(path) ? ignoredField(otherParameters(query)) : part
    const send = (found: FeedAnswer): void => sendFound(exchange, path, origin, found, more)
    if (filter !== null) {
      const address = holderFor(exchange.response).address()
      return served.documents.readFiltered({ path, filter, address }, coding).then(send)
    }
    const found = served.documents.read(path, coding)
    if (found instanceof Promise) return found.then(send)
    send(found)
    return undefined
  }

  const sendFound = (
    exchange: Exchange,
    path: string,
    origin: SnapshotOrigin,
    found: FeedAnswer,
    more: readonly string[],
  ): void => {
    const { request, response } = exchange
    if (found === 'missing') {
      const error = missingFeed(served.reads, config, paths.sourceOf(path) ?? 'feeds', path)
      return sendProblem(request, response, unmirrored(error, origin))
    }
    if (found !== 'absent') return sendAnswer(exchange, found, origin, heads, more)
    const message = `upstream has no ${path}: it answered 404 when the mirror asked`
    sendProblem(request, response, { status: 404, error: 'not_found', message, origin })
  }

  return (exchange, url) => {
    const target = readable(url)
    if (target === null && answerOther(exchange, url)) return undefined
    const { path, query } = target ?? readTarget(url)
    if (path === OSV_ARCHIVE) return answerArchive(options, exchange)
    if (paths.sourceOf(path) !== undefined) return answerDocument(exchange, path, query)
    const id = recordId(path)
    if (id !== null) return answerRecord(exchange, id, url)
    if (!answerOther(exchange, url)) sendProblem(exchange.request, exchange.response, unknownFeed(path))
    return undefined
  }
}

/** Tells another mirror that a 404 is no evidence: which feeds are mirrored here is a matter of settings. */
const UNMIRRORED = { 'X-Mirror-Incomplete': 'feeds.extraPaths' }

/** Returns the 404 of a feed that is not mirrored. Throws the error of one that may be later. */
function unmirrored(error: MirrorError, origin: SnapshotOrigin): Problem {
  if (error.code !== 'not_found') throw error
  return { status: 404, error: 'not_found', message: error.message, headers: UNMIRRORED, origin }
}

/** Returns the 404 of a path that is no mirrored one. */
function unknownFeed(path: string): Problem {
  return { ...pathNotFound(path), headers: UNMIRRORED }
}

/** Null for a target that cannot be decoded. */
function readable(url: string): RequestTarget | null {
  try {
    return readTarget(url)
  } catch {
    return null
  }
}
