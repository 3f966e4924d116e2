import { type ErrorCode, MirrorError, messageOf } from '../../base/errors.ts'
import {
  type DocumentAnswer,
  type FetchOptions,
  type PassedAnswer,
  type PieceReader,
  passDocument,
  receiveDocument,
  confirmsAnother,
  requestHeaders,
} from './document.ts'
import { type OpenAnswer, decodeBody, discardBody, readAnswerBody, refuseHtml } from './response.ts'
import { type Deadline, type Retrying, withDeadline, countRetries, createRetrying } from './retry.ts'
import { type RunSignal, type Wire, checkedMeta, exchange } from './request.ts'
import { originOf, redirected } from './destinations.ts'
import type { SecretSearch } from '../secret-search.ts'
import { type ErrorBody, NO_BODY, answerError, isUnsent, statusError, readErrorReason } from './errors.ts'
import { type Method, type RawAnswer, type RawRequest, through } from './transport.ts'

/** A request of the API client, and whether it is safe to send it twice. */
interface ApiRequest {
  method: Method
  path: string
  /** Sent as JSON; undefined sends no body. */
  json?: unknown
  /** True for GET and DELETE; a POST must state it. */
  idempotent?: boolean
  /** Cap on the body, bytes. */
  maxBytes: number
}

/** The complete response to a request of the API client. */
interface ApiAnswer {
  status: number
  body: Buffer
}

/** Cost of a run until now: requests sent, body bytes received, attempts repeated. */
export interface Cost {
  requests: number
  bytes: number
  retries: number
}

/** A run's session with one surface: counts its cost; ends with its signal, or when its credential was refused. */
export interface Session {
  /** Root URL of the surface, without a slash at the end; paths are appended to it. */
  readonly root: string
  /**
   * Fetches a whole document with retries, from a path below the root or from a URL of the same host. Throws `upstream_*` errors;
   * never returns a partial body.
   */
  fetchDocument(path: string | URL, options: FetchOptions): Promise<DocumentAnswer>
  /**
   * Does the same without having the content in memory as a whole: it is passed to a reader that `open` creates for each
   * attempt, with the size that is expected, bytes.
   */
  passDocument<R extends PieceReader>(
    path: string,
    options: FetchOptions,
    open: (size: number) => R,
  ): Promise<PassedAnswer<R>>
  /** Sends a GET once; the caller reads the body. Throws for any status but 2xx, 304 and 416. */
  openBody(path: string, headers: Record<string, string>, deadline: AbortSignal): Promise<OpenAnswer>
  /**
   * Sends a request of the API, retried where that is safe. Any 2xx is a success, and so is the 404 of a DELETE whose
   * first response was lost. Throws `upstream_*`.
   */
  request(request: ApiRequest): Promise<ApiAnswer>
  /** Calls `attempt` until it succeeds, within the retry rule: network errors, 429 and 5xx only. */
  retrying: Retrying
  /** Adds body bytes that the caller read itself. */
  countBytes(bytes: number): void
  /** The search for credentials in what is received: decoded bytes that contain one must not be stored. */
  readonly secrets: Pick<SecretSearch, 'check' | 'stream' | 'list'>
  readonly cost: Readonly<Cost>
  readonly signal: AbortSignal
}

const MAX_REDIRECTS = 5

/** Creates a run's session with the surface at `root`. */
export function createSession(wire: Wire, root: string, run: RunSignal): Session {
  const { config, now } = wire
  const { cost, signal } = run
  const onRetry = countRetries(cost, run.onRetry)
  const retrying = createRetrying(config, signal, wire.delay, onRetry)
  const count = (bytes: number): void => void (cost.bytes += bytes)
  const limits = { deadlineMs: config.requestTimeoutMs, count }
  const request: Session['request'] = async (asked) => {
    const { path, maxBytes, method, idempotent = method !== 'POST' } = asked
    const earlier = { lost: false } // whether an earlier attempt may have succeeded
    const mayRepeat = (error: unknown): boolean => {
      const unsent = isUnsent(error)
      earlier.lost ||= !unsent
      return idempotent || unsent
    }
    const again = createRetrying(config, signal, wire.delay, onRetry, mayRepeat)
    const attempt = async (deadline: Deadline): Promise<ApiAnswer> => {
      const { status, meta, body } = await follow(wire, run, post(root, asked), deadline)
      if (status >= 300) throw statusError(status, {}, path, now)
      const raw = await readAnswerBody(body, meta, { ...asked, ...limits })
      const content = decodeBody(raw, meta, maxBytes, path)
      refuseHtml(content, pathAsked({ root }, path))
      return { status, body: content }
    }
    try {
      return await again(() => withDeadline(limits.deadlineMs, signal, attempt))
    } catch (error) {
      if (method === 'DELETE' && earlier.lost && codeOf(error) === 'upstream_not_found')
        return { status: 404, body: Buffer.alloc(0) } // removed, as requested
      throw idempotent ? error : uncertain(error)
    }
  }

  const fetching = <T>(
    path: string | URL,
    options: FetchOptions,
    read: (...opened: Parameters<typeof receiveDocument>) => Promise<T>,
  ): Promise<T> => {
    const asked = get(root, path, requestHeaders(options))
    const reading = { path: asked.url.pathname, maxBytes: options.maxBytes, ...limits }
    const plain = get(root, path, requestHeaders({ ...options, stored: null }))
    const attempt = async (due: Deadline): Promise<T> => {
      const { answer, headers } = await followSound(wire, run, { asked, plain }, due)
      return read(wire, answer, headers, reading)
    }
    return retrying(() => withDeadline(limits.deadlineMs, signal, attempt))
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
    secrets: wire.secrets,
    fetchDocument: (path, options) => fetching(path, options, receiveDocument),
    passDocument: (path, options, open) => fetching(path, options, (...opened) => passDocument(...opened, open)),
  }
}

/** Returns a path as it is requested, for messages: with the prefix of its surface, without the query. */
export function pathAsked({ root }: Pick<Session, 'root'>, path: string): string {
  return new URL(root + path).pathname
}

/** Returns the error for a change whose response was lost: it may have been made, so the caller must check. */
function uncertain(error: unknown): unknown {
  if (codeOf(error) !== 'upstream_unreachable' || isUnsent(error)) return error
  const message = `${messageOf(error)}; it is not known whether the change was made, so check before you retry`
  return new MirrorError('upstream_unreachable', message, { cause: error })
}

function codeOf(error: unknown): ErrorCode | null {
  return error instanceof MirrorError ? error.code : null
}

function get(root: string, path: string | URL, headers: Record<string, string>): RawRequest {
  const url = typeof path === 'string' ? new URL(root + path) : path
  if (url.origin !== new URL(root).origin)
    throw new MirrorError('internal', `${originOf(url)} is not the host of ${root}`)
  return { method: 'GET', url, headers, body: null }
}

function post(root: string, { method, path, json }: ApiRequest): RawRequest {
  const body = json === undefined ? null : JSON.stringify(json)
  const headers: Record<string, string> = { accept: 'application/json', 'accept-encoding': 'gzip' }
  if (body !== null) headers['content-type'] = 'application/json'
  return { method, url: new URL(root + path), headers, body }
}

/** Does the same as `follow`; where the answer confirms another version than was asked about, the plain request is sent. */
async function followSound(
  wire: Wire,
  run: RunSignal,
  { asked, plain }: Readonly<Record<'asked' | 'plain', RawRequest>>,
  deadline: Deadline,
): Promise<{ answer: OpenAnswer; headers: Record<string, string> }> {
  const answer = await follow(wire, run, asked, deadline)
  if (!confirmsAnother(asked.headers, answer)) return { answer, headers: asked.headers }
  await discardBody(answer.body)
  return { answer: await follow(wire, run, plain, deadline), headers: plain.headers }
}

/** Sends a request and follows its redirects within one deadline. Throws for any status but 2xx, 304 and 416. */
async function follow(wire: Wire, run: RunSignal, first: RawRequest, deadline: Deadline): Promise<OpenAnswer> {
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
      const reason = await reasonIn(wire, body)
      if (isNothing(status) && !isSamePlace(first.url, request.url)) {
        const message = `${first.url.pathname}: it leads to ${place}, where upstream answered ${status}`
        throw answerError('upstream_status', message, answer)
      }
      throw statusError(status, headers, place, wire.now, reason)
    }
    await discardBody(body)
    // A 301 or 302 would turn a POST into a GET, which makes no change.
    if (request.method !== 'GET' && status !== 307 && status !== 308) throw statusError(status, {}, pathname, wire.now)
    if (hop === MAX_REDIRECTS) throw new MirrorError('upstream_status', `${first.url.pathname}: too many redirects`)
    const url = redirected(request.url, location, wire.setting, wire.scrub !== null)
    request = { ...request, url }
  }
}

function isNothing(status: number): boolean {
  return status === 404 || status === 410
}

/** Returns whether a redirect led to another form of the same path alone: then a 404 there is about it. */
function isSamePlace(one: URL, other: URL): boolean {
  const plain = ({ pathname }: URL): string => pathname.replace(/\/+$/, '')
  return plain(one) === plain(other)
}

/** Reads the reason of an error response of the API; null for the public feeds, whose bodies contain none. */
async function reasonIn({ scrub, secrets }: Wire, body: RawAnswer['body']): Promise<ErrorBody> {
  if (scrub === null) return discardBody(body).then(() => NO_BODY)
  const { reason, members } = await readErrorReason(body)
  return { reason: reason === null ? null : secrets.scrub(scrub(reason)), members }
}
