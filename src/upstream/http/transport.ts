import { readFileSync } from 'node:fs'
import { getCACertificates } from 'node:tls'
import { type Dispatcher, Agent, ProxyAgent, request } from 'undici'
import { type Proxy, createProxyRule } from '../../config/proxies.ts'
import type { Config } from '../../config/schema.ts'
import { messageOf, systemCode } from '../../core/errors.ts'
import { lookupPublic } from './destinations.ts'

/** One HTTP exchange: the raw status, headers and body of the answer, nothing interpreted. */
export interface RawAnswer {
  status: number
  headers: Record<string, string | string[] | undefined>
  body: Body
  /** The proxy that it came through; null or missing: none. */
  proxy?: Proxy | null
}

/** The body of an answer: read it to its end, or destroy it. */
interface Body extends AsyncIterable<Buffer> {
  /** What had arrived and was not yet read when the connection broke; null: nothing. A loop over the body drops it. */
  read(): Buffer | null
  destroy(error?: Error): unknown
  dump(): Promise<unknown>
}

/** The methods that the contract has. */
export type Method = 'GET' | 'POST' | 'DELETE'

/** One HTTP request; `body` null sends none. */
export interface RawRequest {
  method: Method
  url: URL
  headers: Record<string, string>
  body: string | Uint8Array | null
}

/**
 * Sends requests; `send` rejects with whatever the network does, and gives every status as it is. One for all surfaces.
 */
export interface Transport {
  send(request: RawRequest, signal: AbortSignal): Promise<RawAnswer>
  close(): Promise<void>
}

/** What a transport is for, beside the usual. */
interface TransportOptions {
  /** Refuse names that resolve to private addresses; behind a proxy, resolving names is the proxy's. */
  publicOnly?: boolean
  /** Use no proxy at all. */
  direct?: boolean
}

/**
 * The only user of undici: connections, proxy (`config/proxies.ts`) and the extra certificate authorities of
 * `upstream.caFile`, next to the system's. What fails behind a proxy is marked with it (`proxyOf`). `send` throws `config`
 * for a proxy of the environment that is no URL.
 */
export function createTransport(
  config: Config['upstream'],
  { publicOnly = false, direct = false }: TransportOptions = {},
): Transport {
  const rule = createProxyRule(config.proxy, process.env)
  const dispatchers = createDispatchers(config, publicOnly)
  return {
    async send({ url, ...rest }, signal) {
      const proxy = direct ? null : rule(url)
      try {
        const dispatcher = dispatchers.of(proxy)
        const answer = await request(url, { dispatcher, ...rest, signal })
        // Whoever reads the body gets its error; without a reader (a body dropped early) it would end the process.
        answer.body.on('error', (error) => markProxy(error, proxy))
        return { status: answer.statusCode, headers: answer.headers, body: answer.body, proxy }
      } catch (error) {
        markProxy(error, proxy)
        throw error
      }
    },
    // Nothing in flight is worth waiting for: what matters has been committed or is fetched again.
    close: () => dispatchers.close(),
  }
}

/** One dispatcher for direct connections and one for each proxy, made when first used. */
function createDispatchers(config: Config['upstream'], publicOnly: boolean) {
  const ca =
    config.caFile === null
      ? undefined
      : [...getCACertificates('default'), readFileSync(config.caFile, 'utf8')]
  const tls = ca === undefined ? {} : { ca }
  const options = {
    connections: config.concurrency,
    pipelining: 1,
    allowH2: false,
    connectTimeout: config.connectTimeoutMs,
    headersTimeout: config.requestTimeoutMs,
    bodyTimeout: config.lowSpeedBytesPerSecond === 0 ? 0 : config.lowSpeedSeconds * 1000,
    connect: {
      timeout: config.connectTimeoutMs,
      ...tls,
      ...(publicOnly && { lookup: lookupPublic }),
    },
  }
  const made = new Map<string, Dispatcher>()
  return {
    of(proxy: Proxy | null): Dispatcher {
      const name = proxy?.url ?? ''
      const stored = made.get(name)
      if (stored !== undefined) return stored
      const proxied = { ...options, requestTls: tls, proxyTls: tls }
      const fresh =
        proxy === null ? new Agent(options) : new ProxyAgent({ ...proxied, uri: proxy.url })
      made.set(name, fresh)
      return fresh
    },
    async close() {
      await Promise.all([...made.values()].map((one) => one.destroy()))
    },
  }
}

/** The proxies that failures went through. */
const PROXIES = new WeakMap<object, Proxy>()

function markProxy(error: unknown, proxy: Proxy | null): void {
  if (proxy !== null && typeof error === 'object' && error !== null) PROXIES.set(error, proxy)
}

/**
 * What is to be said of a failed request beside its own words: the proxy that it went through, and what to do about a
 * refusal of the proxy or a certificate that is not accepted. Empty when there is nothing.
 */
export function faultNotes(error: unknown): string {
  const proxy = proxyOf(error)
  return through(proxy) + proxyAdvice(error, proxy) + certificateAdvice(error, proxy !== null)
}

function proxyAdvice(error: unknown, proxy: Proxy | null): string {
  const status = proxyStatus(error)
  if (proxy === null || status === null) return ''
  if (status === 407)
    return `; the proxy wants another user name or password: give them in the URL of ${proxy.setting}`
  return status < 500 ? '; the proxy refuses this host: allow it there, or name it in NO_PROXY' : ''
}

/** The status by which the proxy itself refused a request (407, 403); null when it failed otherwise. */
export function proxyStatus(error: unknown): number | null {
  const [, status] = /^Proxy .*\((\d{3})\)/.exec(messageOf(error)) ?? []
  return status === undefined || proxyOf(error) === null ? null : Number(status)
}

/** The proxy that a failed request went through; null: none. */
function proxyOf(error: unknown): Proxy | null {
  return (typeof error === 'object' && error !== null ? PROXIES.get(error) : undefined) ?? null
}

/** ` (through the proxy http://proxy:3128 of HTTPS_PROXY)`: for messages, without the proxy's password; empty for none. */
export function through(proxy: Proxy | null): string {
  if (proxy === null) return ''
  const { protocol, host } = new URL(proxy.url)
  return ` (through the proxy ${protocol}//${host} of ${proxy.setting})`
}

/** Certificates that no authority known here has signed. */
const UNTRUSTED = new Set([
  'DEPTH_ZERO_SELF_SIGNED_CERT',
  'SELF_SIGNED_CERT_IN_CHAIN',
  'UNABLE_TO_GET_ISSUER_CERT',
  'UNABLE_TO_GET_ISSUER_CERT_LOCALLY',
  'UNABLE_TO_VERIFY_LEAF_SIGNATURE',
  'CERT_UNTRUSTED',
  'CERT_CHAIN_TOO_LONG',
  'INVALID_CA',
])
const CERTIFICATE = /^(CERT_|ERR_TLS_CERT)|CERT_(NOT_YET_VALID|HAS_EXPIRED)|CRL_/

/** What to do about a certificate that is not accepted; empty for other faults. */
function certificateAdvice(error: unknown, proxied: boolean): string {
  const code = codeIn(error)
  if (code === undefined) return ''
  if (UNTRUSTED.has(code)) {
    const whose = proxied ? ', which may be that of the proxy,' : ''
    return `; the certificate is not trusted here: name the file of its authority${whose} in upstream.caFile`
  }
  return CERTIFICATE.test(code)
    ? '; the certificate is not valid for this host at this time, which upstream.caFile cannot change: check the address, the clock and the certificate'
    : ''
}

/** The code of an error, or of what caused it. */
function codeIn(error: unknown): string | undefined {
  const code = systemCode(error)
  if (code !== undefined && !code.startsWith('UND_ERR')) return code
  return error instanceof Error && error.cause !== undefined ? codeIn(error.cause) : code
}
