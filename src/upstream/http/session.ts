import { type ErrorCode, MirrorError, messageOf } from '../../core/errors.ts'
import { type Meta, decodeBody, discardBody, readAnswerBody } from './response.ts'
import { type Deadline, type Retrying, withDeadline, createRetrying } from './retry.ts'
import { type RunSignal, type Wire, checkedMeta, exchange } from './request.ts'
import { redirected } from './destinations.ts'
import { isUnsent, statusError, readErrorReason } from './errors.ts'
import { type Method, type RawAnswer, type RawRequest, through } from './transport.ts'

export type DocumentAnswer =
  /** `gzip`: the body as it came over the wire, when it came as gzip. */
  { status: 200 | 206; body: Buffer; gzip: Buffer | null; meta: Meta } | { status: 304; meta: Meta }

/** How a document is to be asked for. */
interface FetchOptions {
  /** Cap on the decoded body, bytes. */
  maxBytes: number
  /** Send conditional headers for what is stored. */
  stored?: { etag: string | null; lastModified: string | null } | null
  headers?: Record<string, string>
  /** Ask for gzip. Off for ranges and archives. */
  gzip?: boolean
}

/** A request of the API client: what it sends, and whether sending it twice does what sending it once does. */
interface ApiRequest {
  method: Method
  path: string
  /** Sent as JSON; undefined sends no body. */
  json?: unknown
  /** GET and DELETE are; a POST only where it is said. */
  idempotent?: boolean
  /** Cap on the body, bytes. */
  maxBytes: number
}

/** The whole answer to a request of the API client. */
interface ApiAnswer {
  status: number
  body: Buffer
}

/** An answer whose body is still to be read. Read it to its end, or destroy it. */
export interface OpenAnswer {
  status: number
  meta: Meta
  body: RawAnswer['body']
}

/** What a run cost so far: requests sent, body bytes received, attempts repeated. */
export interface Cost {
  requests: number
  bytes: number
  retries: number
}

/** One run's view of a surface: counts what it costs; stops at its signal, and when its credential was refused. */
export interface Session {
  /** Of the surface, without a slash at the end: what paths are put after. */
  readonly root: string
  /** Fetches a whole document with retries. Throws `upstream_*` errors; never returns a partial body. */
  fetchDocument(path: string, options: FetchOptions): Promise<DocumentAnswer>
  /** One attempt at a GET whose body the caller reads. Throws on anything but 2xx, 304 and 416. */
  openBody(
    path: string,
    headers: Record<string, string>,
    deadline: AbortSignal,
  ): Promise<OpenAnswer>
  /**
   * Sends a request of the API with retries, as far as they are safe. Any 2xx is an answer, and so is the 404 of a DELETE
   * whose first answer got lost. Throws `upstream_*`.
   */
  request(request: ApiRequest): Promise<ApiAnswer>
  /** Calls `attempt` until it succeeds, within the retry rule: network faults, 429 and 5xx only. */
  retrying: Retrying
  /** Counts body bytes that the caller read itself. */
  countBytes(bytes: number): void
  /** Throws `upstream_secret`, naming `place`, when bytes that the caller decoded hold a credential. */
  checkSecrets(bytes: Buffer, place: string): void
  readonly cost: Readonly<Cost>
  readonly signal: AbortSignal
}

const MAX_REDIRECTS = 5

/** A session with the surface at `root`, for one run. */
export function createSession(wire: Wire, root: string, run: RunSignal): Session {
  const { config, now } = wire
  const { cost, signal } = run
  const retrying = createRetrying(config, signal, wire.delay, cost)
  const count = (bytes: number): void => void (cost.bytes += bytes)
  const limits = { deadlineMs: config.requestTimeoutMs, count }
  const request: Session['request'] = async (asked) => {
    const { path, maxBytes, method, idempotent = method !== 'POST' } = asked
    const earlier = { lost: false } // whether one of them may have done it
    const mayRepeat = (error: unknown): boolean => {
      const unsent = isUnsent(error)
      earlier.lost ||= !unsent
      return idempotent || unsent
    }
    const again = createRetrying(config, signal, wire.delay, cost, mayRepeat)
    const attempt = async (deadline: Deadline): Promise<ApiAnswer> => {
      const { status, meta, body } = await follow(wire, run, post(root, asked), deadline)
      if (status >= 300) throw statusError(status, {}, path, now)
      const raw = await readAnswerBody(body, meta, { ...asked, ...limits })
      return { status, body: decodeBody(raw, meta, maxBytes, path) }
    }
    try {
      return await again(() => withDeadline(limits.deadlineMs, signal, attempt))
    } catch (error) {
      if (method === 'DELETE' && earlier.lost && codeOf(error) === 'upstream_not_found')
        return { status: 404, body: Buffer.alloc(0) } // gone, as it was meant to be
      throw idempotent ? error : doubtful(error)
    }
  }

  return {
    root,
    cost,
    signal,
    openBody: (path, headers, deadline) =>
      follow(wire, run, get(root, path, headers), () => AbortSignal.any([signal, deadline])),
    request,
    retrying,
    countBytes: count,
    checkSecrets: wire.secrets.check,
    fetchDocument: (path, options) =>
      retrying(() =>
        withDeadline(limits.deadlineMs, signal, (due) =>
          fetchWhole(
            wire,
            run,
            get(root, path, requestHeaders(options)),
            { path, ...options, ...limits },
            due,
          ),
        ),
      ),
  }
}

/** One attempt at a whole document. */
async function fetchWhole(
  wire: Wire,
  run: RunSignal,
  request: RawRequest,
  reading: FetchOptions & Parameters<typeof readAnswerBody>[2],
  due: Deadline,
): Promise<DocumentAnswer> {
  const { path, maxBytes } = reading
  const { headers } = request
  const { status, meta, body } = await follow(wire, run, request, due)
  if (status === 304) {
    await discardBody(body)
    if (isConditional(headers)) return { status, meta }
    throw statusError(status, {}, path, wire.now)
  }
  const raw = await readAnswerBody(body, meta, reading)
  if (!isWhole(status, headers)) {
    const wait = meta.retryAfter === null ? {} : { 'retry-after': meta.retryAfter }
    throw statusError(status, wait, path, wire.now)
  }
  const gzip = meta.contentEncoding === 'gzip' ? raw : null
  const answer = { status, meta, body: decodeBody(raw, meta, maxBytes, path), gzip }
  wire.secrets.check(answer.body, path)
  if (gzip !== null) wire.secrets.check(gzip, path) // it is stored as it came, its header's texts included
  return answer
}

/** A change whose answer got lost may have been made: whoever asked has to look. */
function doubtful(error: unknown): unknown {
  if (codeOf(error) !== 'upstream_unreachable' || isUnsent(error)) return error
  const message = `${messageOf(error)}; it is not known whether the change was made, so look before trying again`
  return new MirrorError('upstream_unreachable', message, { cause: error })
}

function codeOf(error: unknown): ErrorCode | null {
  return error instanceof MirrorError ? error.code : null
}

/** A part is no answer to whoever asked for the whole, nor is any other 2xx. */
function isWhole(status: number, headers: Record<string, string>): status is 200 | 206 {
  return status === 200 || (status === 206 && 'range' in headers)
}

function get(root: string, path: string, headers: Record<string, string>): RawRequest {
  return { method: 'GET', url: new URL(root + path), headers, body: null }
}

function post(root: string, { method, path, json }: ApiRequest): RawRequest {
  const body = json === undefined ? null : JSON.stringify(json)
  const headers: Record<string, string> = { accept: 'application/json', 'accept-encoding': 'gzip' }
  if (body !== null) headers['content-type'] = 'application/json'
  return { method, url: new URL(root + path), headers, body }
}

/** Sends a request and follows its redirects, all within one deadline. Throws on anything but 2xx, 304 and 416. */
async function follow(
  wire: Wire,
  run: RunSignal,
  first: RawRequest,
  deadline: Deadline,
): Promise<OpenAnswer> {
  let request = first
  for (let hop = 0; ; hop++) {
    const answer = await exchange(wire, run, request, deadline)
    const { status, headers, body } = answer
    if (status < 300 || status === 304 || status === 416)
      return { status, meta: checkedMeta(wire, request, answer), body }
    const location = headers['location']
    const { pathname } = request.url
    if (status >= 400 || typeof location !== 'string') {
      const place = pathname + through(answer.proxy ?? null)
      throw statusError(status, headers, place, wire.now, await saidBy(wire, body))
    }
    await discardBody(body)
    // A 301 or 302 would turn a POST into a GET, and a change into nothing.
    if (request.method !== 'GET' && status !== 307 && status !== 308)
      throw statusError(status, {}, pathname, wire.now)
    if (hop === MAX_REDIRECTS)
      throw new MirrorError('upstream_status', `${first.url.pathname}: too many redirects`)
    const url = redirected(request.url, location, wire.setting, wire.scrub !== null)
    request = { ...request, url }
  }
}

/** The public feeds' servers have nothing to say to us; the API's refusals name the reason. */
async function saidBy({ scrub, secrets }: Wire, body: RawAnswer['body']): Promise<string | null> {
  if (scrub === null) return discardBody(body).then(() => null)
  const said = await readErrorReason(body)
  return said === null ? null : secrets.scrub(scrub(said))
}

function requestHeaders(options: FetchOptions): Record<string, string> {
  const headers: Record<string, string> = { accept: 'application/json', ...options.headers }
  headers['accept-encoding'] = options.gzip === true ? 'gzip' : 'identity'
  const stored = options.stored ?? null
  if (stored === null) return headers
  if (stored.etag !== null) headers['if-none-match'] = stored.etag
  else if (stored.lastModified !== null) headers['if-modified-since'] = stored.lastModified
  return headers
}

/** "Unchanged" is no answer to whoever asked without a condition. */
function isConditional(headers: Record<string, string>): boolean {
  return 'if-none-match' in headers || 'if-modified-since' in headers
}
