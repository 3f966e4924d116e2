import { setTimeout as delay } from 'node:timers/promises'
import type { Config } from '../config/schema.ts'
import { MirrorError } from '../errors.ts'
import { type Meta, decode, discard, metaOf, networkError, readBody } from './answers.ts'
import { originOf, sameHost } from './redirects.ts'
import { isTransient, retryAfterMs, statusError } from './retries.ts'
import { createTransport, type RawAnswer } from './transport.ts'

export type DocumentAnswer =
  /** `gzip`: the body as it came over the wire, when it came as gzip. */
  { status: 200 | 206; body: Buffer; gzip: Buffer | null; meta: Meta } | { status: 304; meta: Meta }

/** How a document is to be asked for. */
export interface FetchOptions {
  /** Cap on the decoded body, bytes. */
  maxBytes: number
  /** Send conditional headers for what is held. */
  held?: { etag: string | null; lastModified: string | null } | null
  headers?: Record<string, string>
  /** Ask for gzip. Off for ranges and archives. */
  gzip?: boolean
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

/** One run's view of upstream: counts what it costs; stops at its signal. */
export interface Session {
  /** Fetches a whole document with retries. Throws `upstream_*` errors; never returns a partial body. */
  fetchDocument(path: string, options: FetchOptions): Promise<DocumentAnswer>
  /** One attempt at a request whose body the caller reads. Throws on anything but 2xx, 304 and 416. */
  openBody(
    path: string,
    headers: Record<string, string>,
    deadline: AbortSignal,
  ): Promise<OpenAnswer>
  /** Calls `attempt` until it succeeds, within the retry rule: network faults, 429 and 5xx only. */
  retrying: <T>(attempt: () => Promise<T>, madeProgress?: (error: unknown) => boolean) => Promise<T>
  /** Counts body bytes that the caller read itself. */
  countBytes(bytes: number): void
  readonly cost: Readonly<Cost>
  readonly signal: AbortSignal
}

/** The way to the service; `close` drops every connection. */
export interface Client {
  open(signal: AbortSignal): Session
  close(): Promise<void>
}

interface Context {
  config: Config['upstream']
  get: (url: URL, headers: Record<string, string>, signal: AbortSignal) => Promise<RawAnswer>
  userAgent: string
  now: () => number
}

const MAX_REDIRECTS = 5

/**
 * The one way to the service: user agent, deadline, size cap and retry rule of every request are here.
 * Requires `upstream.apiRoot`; throws `config` without it.
 */
export function createClient(deps: {
  config: Config['upstream']
  version: string
  now: () => number
}): Client {
  const { config, version, now } = deps
  const root = config.apiRoot
  if (root === null) throw new MirrorError('config', 'upstream.apiRoot is not set')
  const transport = createTransport(config)
  const comment = config.userAgent === null ? '' : ` (${config.userAgent})`
  const context: Context = {
    config,
    now,
    get: (url, headers, signal) => transport.get(url, headers, signal),
    userAgent: `patchmirror/${version}${comment}`,
  }
  return { open: (signal) => createSession(context, root, signal), close: () => transport.close() }
}

function createSession(context: Context, root: string, signal: AbortSignal): Session {
  const { config } = context
  const cost = { requests: 0, bytes: 0, retries: 0 }
  const countBytes = (bytes: number): number => (cost.bytes += bytes)
  const retrying = createRetrying(config, signal, cost)
  const limits = { deadlineMs: config.requestTimeoutMs, count: countBytes }

  const openBody: Session['openBody'] = async (path, headers, deadline) => {
    let url = new URL(root + path)
    for (let hop = 0; ; hop++) {
      cost.requests++
      const answer = await exchange(context, url, headers, AbortSignal.any([signal, deadline]))
      const meta = metaOf(answer, context.now)
      if (answer.status < 300 || answer.status === 304 || answer.status === 416) {
        return { status: answer.status, meta, body: answer.body }
      }
      const location = answer.headers['location']
      await discard(answer.body)
      if (answer.status >= 400 || typeof location !== 'string') {
        throw statusError(answer.status, answer.headers, url.pathname, context.now)
      }
      if (hop === MAX_REDIRECTS)
        throw new MirrorError('upstream_status', `${path}: too many redirects`)
      url = redirected(url, location)
    }
  }

  const fetchOnce = async (path: string, options: FetchOptions): Promise<DocumentAnswer> => {
    const deadline = AbortSignal.timeout(config.requestTimeoutMs)
    const headers = requestHeaders(options)
    const { status, meta, body } = await openBody(path, headers, deadline)
    if (status === 304) {
      await discard(body)
      if (isConditional(headers)) return { status, meta }
      throw statusError(status, {}, path, context.now)
    }
    const raw = await readBody(body, meta, { path, ...options, ...limits })
    // A part is no answer to whoever asked for the whole, nor is any other 2xx.
    const good = status === 200 || (status === 206 && 'range' in headers)
    if (!good) throw statusError(status, {}, path, context.now)
    const gzip = meta.contentEncoding === 'gzip' ? raw : null
    return { status, meta, body: decode(raw, meta, options.maxBytes, path), gzip }
  }

  return {
    cost,
    signal,
    openBody,
    retrying,
    countBytes,
    fetchDocument: (path, options) => retrying(() => fetchOnce(path, options)),
  }
}

/** The retry rule: `retries` attempts after the first, counted anew after progress; the pause grows, the signal ends it. */
function createRetrying(
  config: Config['upstream'],
  signal: AbortSignal,
  cost: Cost,
): Session['retrying'] {
  return async (attempt, madeProgress = () => false) => {
    for (let failures = 0; ;) {
      try {
        return await attempt()
      } catch (error) {
        signal.throwIfAborted()
        if (!isTransient(error)) throw error
        failures = madeProgress(error) ? 1 : failures + 1
        if (failures > config.retries) throw error
        const wait = pause(config, failures, error)
        cost.retries++
        await delay(wait, undefined, { signal })
      }
    }
  }
}

async function exchange(
  { get, userAgent, config }: Context,
  url: URL,
  headers: Record<string, string>,
  signal: AbortSignal,
): Promise<RawAnswer> {
  try {
    return await get(url, { 'user-agent': userAgent, ...headers }, signal)
  } catch (error) {
    throw networkError(error, `${originOf(url)}${url.pathname}`, config.requestTimeoutMs)
  }
}

function requestHeaders(options: FetchOptions): Record<string, string> {
  const headers: Record<string, string> = { accept: 'application/json', ...options.headers }
  headers['accept-encoding'] = options.gzip === true ? 'gzip' : 'identity'
  const held = options.held ?? null
  if (held === null) return headers
  if (held.etag !== null) headers['if-none-match'] = held.etag
  else if (held.lastModified !== null) headers['if-modified-since'] = held.lastModified
  return headers
}

/** "Unchanged" is no answer to whoever asked without a condition. */
function isConditional(headers: Record<string, string>): boolean {
  return 'if-none-match' in headers || 'if-modified-since' in headers
}

/** Redirects stay within the configured host and never fall back from https. */
function redirected(from: URL, location: string): URL {
  const to = URL.parse(location, from.href)
  if (to !== null && sameHost(from, to)) return to
  throw new MirrorError(
    'upstream_status',
    `${from.pathname}: redirected to ${to === null ? 'nowhere' : originOf(to)}, and only redirects within ` +
      `${originOf(from)} are followed. If the service moved, set upstream.apiRoot to its new address.`,
  )
}

function pause(config: Config['upstream'], failures: number, error: unknown): number {
  const ceiling = Math.min(config.retryMaxMs, config.retryMinMs * 2 ** (failures - 1))
  const jittered = ceiling / 2 + Math.random() * (ceiling / 2)
  const asked = retryAfterMs(error)
  if (asked === null) return jittered
  if (asked <= config.retryAfterMaxSeconds * 1000) return asked + Math.random() * config.retryMinMs
  throw error
}
