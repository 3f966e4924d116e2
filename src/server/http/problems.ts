import type { IncomingMessage, OutgoingHttpHeaders, ServerResponse } from 'node:http'
import { originHeaders } from './origin.ts'
import { MirrorError, httpStatus } from '../../base/errors.ts'
import { nameStorageError } from '../../store/database/faults.ts'
import { RELEASES } from '../../base/domain/resources.ts'
import type { SnapshotOrigin } from './origin.ts'

/** Where an answer goes: Node's own response, or one that is carried to it from another thread. */
export interface Outgoing {
  writeHead(status: number, headers: string[] | OutgoingHttpHeaders): Outgoing
  end(body?: Buffer): unknown
}

/** An answer that is not the document asked for. `error` is a stable code, `message` is for a person. */
export interface Problem {
  readonly status: number
  readonly error: string
  readonly message: string
  /** More fields of the JSON body. */
  readonly fields?: Readonly<Record<string, string | number | readonly string[] | null>>
  readonly headers?: Readonly<Record<string, string>>
  /** Set when the path is a mirrored one. */
  readonly origin?: SnapshotOrigin | null
}

/** How a problem is written: the mirror's own way and that of most surfaces, or the identity surface's. */
export type ProblemForm = 'message' | 'identity'

/**
 * The JSON body of a problem: `{"error", "message", …}`, or the identity surface's `{"error", "error_description",
 * "status_code"}` (service API, section 7), which has no other fields, and calls every 400 `invalid_request`.
 */
export function problemBody({ status, error, message, fields }: Problem, form: ProblemForm = 'message'): object {
  if (form === 'message') return { error, message, ...fields }
  return {
    error: status === 400 ? 'invalid_request' : error,
    error_description: message,
    status_code: status,
  }
}

/** A 503 of this code lasts as long as its data; every other one is temporary. */
const LASTING = 'upstream_too_large'
const RETRY_SECONDS = '30'

/** Returns `Retry-After` for a status that is temporary: every 503 has one, unless its `error` says that it lasts. */
export function retryHeaders(status: number, error = ''): Record<string, string> {
  return status === 503 && error !== LASTING ? { 'Retry-After': RETRY_SECONDS } : {}
}

/** Header fields of a problem; never cached. */
export function problemHeaders({ status, error, headers, origin }: Omit<Problem, 'message'>): Record<string, string> {
  return {
    'Cache-Control': 'no-store',
    ...retryHeaders(status, error),
    ...headers,
    ...originHeaders(origin),
  }
}

/** Sends a problem as JSON; a HEAD gets its headers. */
export function sendProblem(
  request: Pick<IncomingMessage, 'method'>,
  response: Outgoing,
  problem: Problem,
  form: ProblemForm = 'message',
): void {
  const body = JSON.stringify(problemBody(problem, form))
  response.writeHead(problem.status, {
    'Content-Type': 'application/json',
    'Content-Length': Buffer.byteLength(body),
    ...problemHeaders(problem),
  })
  if (request.method === 'HEAD') response.end()
  else response.end(Buffer.from(body))
}

/** 405, for everything but GET and HEAD. */
export function methodNotAllowed(method: string): Problem {
  return {
    status: 405,
    error: 'method_not_allowed',
    message: `${method} is not allowed: the mirror is read-only`,
    headers: { Allow: 'GET, HEAD' },
  }
}

/** 404 for a path that the mirror does not have. */
export function pathNotFound(path: string): Problem {
  const message = path.startsWith('/packages/')
    ? `nothing is mirrored under this path: of the package catalog, which takes upstream.catalogUrl, it is ${RELEASES.versions} and what is below`
    : 'nothing is mirrored under this path: GET / lists the public paths'
  return { status: 404, error: 'not_found', message, fields: { path: path.slice(0, 512) } }
}

const OPEN_CODES: ReadonlySet<string> = new Set(['not_found', 'not_ready', 'stale', 'bad_request', 'not_supported'])
const FIXED_TEXTS: Readonly<Record<number, string>> = {
  503: 'the mirror cannot read its data now: see its log for the reason',
}
const FAILED = 'the mirror failed to answer; see its log for the reason'

/**
 * Returns the problem for anything thrown. Only the mirror's own messages about a request are shown; a fault of the store
 * is a 503, anything unknown a 500, both with a fixed text: the details are logged.
 */
function problemOf(thrown: unknown, dataDir: string): Problem & { readonly fault: boolean } {
  const error = nameStorageError(thrown, dataDir)
  if (error instanceof MirrorError && error.code === LASTING)
    return { status: 503, error: error.code, message: error.message, fault: false }
  const status = httpStatus(error)
  if (error instanceof MirrorError && OPEN_CODES.has(error.code))
    return { status, error: error.code, message: error.message, fault: false }
  const code = error instanceof MirrorError && status !== 500 ? error.code : 'internal'
  return { status, error: code, message: FIXED_TEXTS[status] ?? FAILED, fault: true }
}

/** What the API needs of a pino logger. */
export interface ServerLog {
  debug(fields: object, message: string): void
  info(fields: object, message: string): void
  warn(fields: object, message: string): void
  error(fields: object, message: string): void
  isLevelEnabled(level: string): boolean
}

/** What becomes of anything thrown while answering. */
export type Failures = ReturnType<typeof createFailures>

/** What a problem takes over from the path that it is about. */
interface Manner {
  readonly origin?: SnapshotOrigin | null
  readonly form?: ProblemForm
}

/**
 * The boundary where everything thrown while answering ends: one line in the log, a safe text to the client. `noted` is asked
 * about a fault first: true when the log has its cause already, as for a damaged database.
 */
export function createFailures(
  dataDir: string,
  log: ServerLog | null,
  noted: (error: unknown) => boolean = () => false,
) {
  const problem = (error: unknown, request: IncomingMessage): Problem => {
    const found = problemOf(error, dataDir)
    const path = request.url?.split('?', 1)[0]
    if (!found.fault) return found
    const { method } = request
    if (noted(error)) log?.debug({ method, path }, 'a request failed: stored data cannot be read')
    else log?.error({ err: error, method, path }, 'a request failed')
    return found
  }
  return {
    /** The problem to answer with; a fault of ours is logged, with its cause. */
    problem,
    /** Answers on Node's own response; cuts the connection when part of another answer is out already. */
    answer: (
      error: unknown,
      request: IncomingMessage,
      response: ServerResponse,
      { origin = null, form }: Manner = {},
    ): void => {
      const found = problem(error, request)
      if (response.headersSent) response.destroy()
      else sendProblem(request, response, { origin, ...found }, form)
    },
  }
}
