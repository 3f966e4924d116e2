import type { Trusted } from '../../base/connections/network.ts'
import { getCACertificates } from 'node:tls'
import type { Dispatcher } from 'undici'
import { type Proxy, createProxyRule } from '../../config/proxies.ts'
import { readNamedFile } from '../../base/files.ts'
import type { Config } from '../../config/schema.ts'
import { messageOf, systemCode } from '../../base/errors.ts'
import { type Body, type IncomingBody, createBody } from './body.ts'
import type { StopSignal } from './stop-signal.ts'
import { certificateAdvice } from './certificates.ts'
import { lookupPublic } from './destinations.ts'

/** Loads undici with the first request: a thread is ready without its hundred modules, and many threads never send any. */
const loadUndici = () => import('undici')

type Undici = Awaited<ReturnType<typeof loadUndici>>

/** The loaded library: an import is a dozen promises, even of what is loaded. */
let undici: Undici | null = null

/** The raw status, headers and body of one HTTP response. */
export interface RawAnswer {
  status: number
  headers: Record<string, string | string[] | undefined>
  body: Body
  /** Proxy that was used; null or missing: none. */
  proxy?: Proxy | null
}

/** HTTP methods of the contract. */
export type Method = 'GET' | 'POST' | 'DELETE'

/** One HTTP request; `body` null sends none. */
export interface RawRequest {
  method: Method | 'HEAD' | 'OPTIONS' | 'PATCH' | 'PUT'
  url: URL
  headers: Record<string, string>
  body: string | Uint8Array | null
}

/** Sends requests; `send` rejects with network errors and returns every status. Shared by all surfaces. */
export interface Transport {
  send(request: RawRequest, signal: StopSignal): Promise<RawAnswer>
  close(): Promise<void>
}

/** Options of a transport. */
interface TransportOptions {
  /** Refuses names that resolve to private addresses, but for these; behind a proxy, the proxy resolves names. */
  privateTo?: Trusted | undefined
  /** Whether to ignore the configured proxy. */
  direct?: boolean
  /**
   * For requests to the daemon of this machine, which bring no credential: the unix socket to connect to, if it has one.
   * Its certificate is not verified: it names the mirror's public name, not the address used here, and who answered is known
   * from the instance that the answer names.
   */
  own?: { readonly socket: string | null } | undefined
}

/**
 * Creates the transport; the only file that imports undici. It uses the proxy (`config/proxies.ts`) and the extra
 * certificate authorities of `upstream.caFile` in addition to the system's. Errors behind a proxy are marked with it
 * (`proxyOf`). `send` throws `config` for a proxy of the environment that is not a URL.
 */
export function createTransport(
  config: Config['upstream'],
  { privateTo, direct = false, own }: TransportOptions = {},
): Transport {
  const rule = createProxyRule(config.proxy, process.env)
  const dispatchers = createDispatchers(config, { privateTo, own })
  return {
    async send(request, signal) {
      const proxy = direct ? null : rule(request.url)
      const fail = (error: unknown): void => markProxy(error, proxy)
      try {
        undici ??= await loadUndici()
        return await dispatch(dispatchers.of(undici, proxy), request, { signal, proxy, fail })
      } catch (error) {
        fail(error)
        throw error
      }
    },
    // No request is awaited: its results are committed already or will be fetched again.
    close: () => dispatchers.close(),
  }
}

/** What a request is sent under: its signal, its proxy, and what sees its errors. */
interface Sending {
  readonly signal: StopSignal
  readonly proxy: Proxy | null
  readonly fail: (error: unknown) => void
}

/**
 * Sends one request; resolves with the headers. `onError` sees an error of the body, which its reader gets. Without the
 * streams of undici's own `request`: a crawl's many small bodies arrive with their headers, and are read in one piece.
 */
function dispatch(
  dispatcher: Dispatcher,
  { method, url, headers, body }: RawRequest,
  { signal, proxy, fail: onError }: Sending,
): Promise<RawAnswer> {
  const { promise, resolve, reject } = Promise.withResolvers<RawAnswer>()
  let controller: Dispatcher.DispatchController | null = null
  let incoming: IncomingBody | null = null
  const fail = (error: unknown): void => {
    onError(error)
    incoming?.fail(error)
    reject(error) // of no effect after the headers
  }
  const abort = (): void => {
    fail(signal.reason)
    controller?.abort(errorOf(signal.reason))
  }
  const handler: Dispatcher.DispatchHandler = {
    onRequestStart(own) {
      controller = own
      if (signal.aborted) abort()
    },
    onResponseStart(own, status, headers) {
      if (status < 200) return
      incoming = createBody({
        pause: () => own.pause(),
        resume: () => own.resume(),
        abort: (error) => own.abort(error),
      })
      resolve({ status, headers, body: incoming.body, proxy })
    },
    onResponseData: (_, chunk) => incoming?.push(chunk),
    onResponseEnd() {
      signal.removeEventListener('abort', abort)
      incoming?.end()
    },
    onResponseError(_, error) {
      signal.removeEventListener('abort', abort)
      fail(error)
    },
  }
  if (signal.aborted) abort()
  else {
    signal.addEventListener('abort', abort)
    const { origin, pathname, search } = url
    dispatcher.dispatch({ method, headers, body, origin, path: pathname + search }, handler)
  }
  return promise
}

function errorOf(reason: unknown): Error {
  return reason instanceof Error ? reason : new Error('the request was aborted', { cause: reason })
}

/** Returns the trusted certificate authorities in PEM; undefined: those of the system alone. */
export function authoritiesOf({ caFile }: Pick<Config['upstream'], 'caFile'>): string[] | undefined {
  if (caFile === null) return undefined
  return [...getCACertificates('default'), readNamedFile(caFile).toString('utf8')]
}

/** How long to wait for a connection, TLS included, milliseconds: it outlasts a lost SYN or two; what is silent then stays so. */
const CONNECT_TIMEOUT_MS = 10_000

/** Returns how long a connection may take to open, milliseconds: no longer than the whole request may. */
export function connectTimeoutOf({ requestTimeoutMs }: Pick<Config['upstream'], 'requestTimeoutMs'>): number {
  return Math.min(CONNECT_TIMEOUT_MS, requestTimeoutMs)
}

/** Creates a dispatcher for direct connections and one per proxy, each on first use. */
function createDispatchers(config: Config['upstream'], { privateTo, own }: TransportOptions) {
  const ca = authoritiesOf(config)
  const tls = ca === undefined ? {} : { ca }
  const options = {
    connections: config.concurrency,
    pipelining: 1,
    allowH2: false,
    connectTimeout: connectTimeoutOf(config),
    headersTimeout: config.requestTimeoutMs,
    bodyTimeout: config.lowSpeedSeconds * 1000,
    connect: {
      timeout: connectTimeoutOf(config),
      ...tls,
      ...(privateTo && { lookup: lookupPublic(privateTo) }),
      ...(own && { rejectUnauthorized: false }),
      ...(typeof own?.socket === 'string' && { socketPath: own.socket }),
    },
  }
  const made = new Map<string, Dispatcher>()
  return {
    of({ Agent, ProxyAgent }: Undici, proxy: Proxy | null): Dispatcher {
      const name = proxy?.url ?? ''
      const stored = made.get(name)
      if (stored !== undefined) return stored
      const proxied = { ...options, requestTls: tls, proxyTls: tls }
      const fresh = proxy === null ? new Agent(options) : new ProxyAgent({ ...proxied, uri: proxy.url })
      made.set(name, fresh)
      return fresh
    },
    async close() {
      await Promise.all([...made.values()].map((one) => one.destroy()))
    },
  }
}

/** Proxies of failed requests, by error. */
const PROXIES = new WeakMap<object, Proxy>()

function markProxy(error: unknown, proxy: Proxy | null): void {
  if (proxy !== null && typeof error === 'object' && error !== null) PROXIES.set(error, proxy)
}

/**
 * Returns additions to a network error's message: the proxy that was used, and advice for a proxy's refusal or an
 * untrusted certificate. Empty when there are none.
 */
export function faultNotes(error: unknown): string {
  const proxy = proxyOf(error)
  const advice = proxyAdvice(error, proxy) + certificateAdvice(error, proxy !== null)
  return through(proxy) + advice + versionAdvice(error)
}

/** Returns advice for a server that speaks no TLS, or only HTTP/2; empty for other errors. */
function versionAdvice(error: unknown): string {
  for (let at = error; at instanceof Error; at = at.cause) {
    if (systemCode(at) === NO_TLS) return '; it speaks no TLS there: write http:// if that is meant, or check the port'
    if (systemCode(at) === NO_PROTOCOL || ('data' in at && isSettingsFrame(at.data)))
      return '; the server speaks only HTTP/2 there, and this program uses HTTP/1.1: enable HTTP/1.1 on the server or its proxy'
  }
  return ''
}

/** What came in place of TLS is none: mostly an answer in plain HTTP. */
const NO_TLS = 'ERR_SSL_WRONG_VERSION_NUMBER'

/** The answer of TLS to a client that offers HTTP/1.1 alone (RFC 7301, 3.2). */
const NO_PROTOCOL = 'ERR_SSL_TLSV1_ALERT_NO_APPLICATION_PROTOCOL'

/** The type of the first frame. */
const SETTINGS = 4

/** Reports whether what came in place of an answer is the first frame of HTTP/2 (RFC 9113, 3.4): a SETTINGS frame of stream 0. */
function isSettingsFrame(data: unknown): boolean {
  if (typeof data !== 'string') return false
  const [length, , , type, , ...stream] = Buffer.from(data.slice(0, 9), 'latin1')
  return length === 0 && type === SETTINGS && stream.join() === '0,0,0,0'
}

function proxyAdvice(error: unknown, proxy: Proxy | null): string {
  const status = proxyStatus(error)
  if (proxy === null || status === null) return ''
  if (status === 407)
    return `; the proxy requires another user name or password: set them in the URL of ${proxy.setting}`
  return status < 500 ? '; the proxy refuses this host: allow it there, or name it in NO_PROXY' : ''
}

/** Returns the status with which the proxy itself refused a request (407, 403); null for other failures. */
export function proxyStatus(error: unknown): number | null {
  const [, status] = /^Proxy .*\((\d{3})\)/.exec(messageOf(error)) ?? []
  return status === undefined || proxyOf(error) === null ? null : Number(status)
}

/** Returns the proxy of a failed request; null: none. */
function proxyOf(error: unknown): Proxy | null {
  return (typeof error === 'object' && error !== null ? PROXIES.get(error) : undefined) ?? null
}

/**
 * Returns ` (through the proxy http://proxy:3128 of HTTPS_PROXY)`, for messages, without the proxy's password; empty
 * for no proxy.
 */
export function through(proxy: Proxy | null): string {
  if (proxy === null) return ''
  const { protocol, host } = new URL(proxy.url)
  return ` (through the proxy ${protocol}//${host} of ${proxy.setting})`
}
