import { readFileSync } from 'node:fs'
import { getCACertificates } from 'node:tls'
import { Agent, type Dispatcher, EnvHttpProxyAgent, ProxyAgent, request } from 'undici'
import type { Config } from '../config/schema.ts'
import { MirrorError } from '../errors.ts'
import { lookupPublic } from './addresses.ts'

/** One HTTP exchange: the raw status, headers and body of the answer, nothing interpreted. */
export interface RawAnswer {
  status: number
  headers: Record<string, string | string[] | undefined>
  body: Body
}

/** The body of an answer: read it to its end, or destroy it. */
export interface Body extends AsyncIterable<Buffer> {
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

/**
 * The only user of undici: connections, proxy (`upstream.proxy`, else HTTPS_PROXY, HTTP_PROXY and NO_PROXY of
 * the environment) and the extra certificate authorities of `upstream.caFile`, next to the system's. Throws `config` for a proxy that is no URL.
 * `publicOnly` refuses names that resolve to private addresses; behind a proxy, resolving names is the proxy's.
 */
export function createTransport(config: Config['upstream'], publicOnly = false): Transport {
  const dispatcher = createDispatcher(config, publicOnly)
  return {
    async send({ url, ...rest }, signal) {
      const answer = await request(url, { dispatcher, ...rest, signal })
      // Whoever reads the body gets its error; without a reader (a body dropped early) it would end the process.
      answer.body.on('error', () => undefined)
      return { status: answer.statusCode, headers: answer.headers, body: answer.body }
    },
    // Nothing in flight is worth waiting for: what matters has been committed or is fetched again.
    close: () => dispatcher.destroy(),
  }
}

function createDispatcher(config: Config['upstream'], publicOnly: boolean): Dispatcher {
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
  const proxied = { ...options, requestTls: tls, proxyTls: tls }
  if (config.proxy !== null) return new ProxyAgent({ ...proxied, uri: config.proxy })
  const named = PROXY_VARIABLES.filter((name) => (process.env[name] ?? '') !== '')
  if (named.length === 0) return new Agent(options)
  try {
    return new EnvHttpProxyAgent(proxied)
  } catch (error) {
    const message = `${named.join(', ')}: not the http:// or https:// URL of a proxy`
    throw new MirrorError('config', message, { cause: error })
  }
}

const PROXY_VARIABLES = ['HTTPS_PROXY', 'https_proxy', 'HTTP_PROXY', 'http_proxy']
