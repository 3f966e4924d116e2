import type { IncomingMessage, Server, ServerOptions, ServerResponse } from 'node:http'
import { createServer as createTlsServer } from 'node:https'
import { type ListenOptions, type Server as NetServer, isIPv6 } from 'node:net'
import { type CertificateFiles, type CertificateFollower, followCertificate, readCertificate } from '../certificate.ts'
import { http } from './http.ts'
import type { ConnectionLimit } from './limit.ts'

/** What answers requests. */
export type HttpHandler = (request: IncomingMessage, response: ServerResponse) => void

/** A TLS handshake is made within this time, milliseconds. */
const HANDSHAKE_MS = 10_000
/** How often connections that have fallen idle are closed while a server ends, milliseconds. */
const SWEEP_MS = 20

/** What a server with TLS has of its certificate: its files, and what logs that they changed. */
interface ServedCertificate extends Omit<Parameters<typeof followCertificate>[2], 'used'> {
  readonly files: CertificateFiles
}

/** A server of this program, and what follows the files of its certificate; null without TLS. */
interface MadeServer {
  readonly server: Server
  readonly certificate: CertificateFollower | null
}

/**
 * Creates a server, with TLS where it has a certificate; `withOneHost` refuses requests without a `Host`. Throws `config` for a
 * certificate that cannot be used.
 */
export function createServer(handler: HttpHandler, given: ServerOptions, tls: ServedCertificate | null): MadeServer {
  const options = { ...given, requireHostHeader: false }
  const made =
    tls === null ? { server: http.createServer(options, handler), certificate: null } : secure(handler, options, tls)
  // A client may close its side when it has sent its request, and still wait for the answer (RFC 9112, section 9.6).
  Object.assign(made.server, { httpAllowHalfOpen: true })
  return made
}

function secure(handler: HttpHandler, options: ServerOptions, { files, ...follow }: ServedCertificate): MadeServer {
  const used = readCertificate(files, follow.section)
  const tls = { ...used, handshakeTimeout: HANDSHAKE_MS, allowHalfOpen: true }
  const server = createTlsServer({ ...options, ...tls }, handler)
  const certificate = followCertificate(server, files, { ...follow, used })
  server.once('close', () => certificate.stop())
  return { server, certificate }
}

/** The handler, but `refuse` for a request without a `Host`, unless it is of HTTP/1.0, or with two (RFC 9112, section 3.2). */
export function withOneHost(handler: HttpHandler, refuse: HttpHandler): HttpHandler {
  return (request, response) => {
    const hosts = hostsOf(request.rawHeaders)
    const isSound = hosts === 1 || (hosts === 0 && request.httpVersion === '1.0')
    return (isSound ? handler : refuse)(request, response)
  }
}

function hostsOf(rawHeaders: readonly string[]): number {
  let count = 0
  for (let at = 0; at < rawHeaders.length; at += 2) {
    const name = rawHeaders[at]
    if (name?.length === 4 && name.toLowerCase() === 'host') count++
  }
  return count
}

/** Resolves when a server listens; rejects with the system's error. */
export function listenOn(server: NetServer, at: ListenOptions): Promise<void> {
  return new Promise((resolve, reject) => {
    server.once('error', reject).listen(at, resolve)
  })
}

const ANY_ADDRESS: ReadonlySet<string> = new Set(['0.0.0.0', '::'])

/** Returns the host of an address to show; a wildcard address is shown as localhost. */
export function shownHost(host: string): string {
  if (ANY_ADDRESS.has(host)) return 'localhost'
  return isIPv6(host) ? `[${host}]` : host
}

/**
 * Waits for `closed` while the connections of a server that ends fall idle one by one, and cuts off what still runs after
 * `graceMs`. Node only closes the connections that are idle when it is called.
 */
export async function drain(
  server: Server,
  limit: ConnectionLimit,
  closed: Promise<unknown>,
  graceMs: number,
): Promise<void> {
  const sweep = setInterval(() => {
    server.closeIdleConnections()
    limit.closeQuiet()
  }, SWEEP_MS)
  const end = setTimeout(() => {
    limit.closeAll()
    server.closeAllConnections()
  }, graceMs)
  try {
    await closed
  } finally {
    clearInterval(sweep)
    clearTimeout(end)
  }
}
