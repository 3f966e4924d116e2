import type { IncomingMessage, Server, ServerOptions, ServerResponse } from 'node:http'
import { createServer as createTlsServer } from 'node:https'
import type { Duplex } from 'node:stream'
import type { Config } from '../../config/schema.ts'
import {
  type CertificateFiles,
  type CertificateFollower,
  followCertificate,
  readCertificate,
} from '../../base/certificate.ts'
import { type ResponseAccount, countedResponses } from '../../base/connections/responses.ts'
import { http } from '../../base/connections/http.ts'
import { type ConnectionLimit, isReserved } from '../../base/connections/limit.ts'
import { systemCode } from '../../base/errors.ts'
import { type ServerLog, sendProblem } from './problems.ts'
import { type FastPath, HEADERS_MS } from './fast-path.ts'
import { afterAnswers, limitPipelining, isAnswering } from '../../base/connections/pipelining.ts'
import { withoutValues } from './request-target.ts'

export type HttpHandler = (request: IncomingMessage, response: ServerResponse) => void

/** Header bytes accepted in a request: clients behind proxies carry a lot that the mirror never looks at. */
const MAX_HEADER_BYTES = 64 * 1024
/** Bytes that may be buffered for a slow client before the writer has to wait. */
const WAITING_BYTES = 32 * 1024
/** A head, and a whole request, come within these times, milliseconds; it is looked every two seconds. */
const RECEIVING = {
  headersTimeout: HEADERS_MS,
  requestTimeout: 60_000,
  connectionsCheckingInterval: 2_000,
}
/** A TLS handshake is made within this time, milliseconds. */
const HANDSHAKE_MS = 10_000
/** A connection on which nothing moves for this long, with an answer under way, is cut off. */
const STALL_MS = 300_000

/** What a server works with. */
interface ServerTools {
  readonly log: ServerLog | null
  /** Gets what follows the files of the certificate. */
  readonly certificates: CertificateFollower[]
  /** What bodies and unsent answers count in; they are not counted when not given. */
  readonly counts?: ResponseAccount
}

/**
 * Creates a tuned Node server, with TLS where `server.certFile` is set: idle connections stay as long as the settings
 * allow; an unknown `Expect` and an `Upgrade` are ignored like any other header. Throws `config` for a certificate that
 * cannot be used.
 */
export function createHttp(handler: HttpHandler, settings: Config['server'], tools: ServerTools): Server {
  const options = {
    keepAliveTimeout: settings.keepAliveSeconds * 1000,
    maxHeaderSize: MAX_HEADER_BYTES,
    highWaterMark: WAITING_BYTES,
    ...RECEIVING,
    ...(tools.counts && { ServerResponse: countedResponses(tools.counts) }),
  }
  const paced = limitPipelining(withOneHost(handler))
  const { certFile, keyFile } = settings
  const isTls = certFile !== null && keyFile !== null
  const made = isTls ? createTls({ certFile, keyFile }, paced, options, tools) : http.createServer(options, paced)
  // A client may close its side when it has sent its request, and still wait for the answer (RFC 9112, section 9.6).
  const server = Object.assign(made, { httpAllowHalfOpen: true })
  server.on('checkExpectation', paced)
  server.timeout = STALL_MS
  return server
}

function createTls(
  files: CertificateFiles,
  handler: HttpHandler,
  options: ServerOptions,
  { log, certificates }: ServerTools,
): Server {
  const used = readCertificate(files, 'server')
  const tls = { ...used, handshakeTimeout: HANDSHAKE_MS, allowHalfOpen: true }
  const server = createTlsServer({ ...options, ...tls }, handler)
  const certificate = followCertificate(server, files, { section: 'server', used, log })
  certificates.push(certificate)
  server.once('close', () => certificate.stop())
  return server
}

/** 400 for a request with more than one `Host` (RFC 9112, section 3.2): it is ambiguous. */
function withOneHost(handler: HttpHandler): HttpHandler {
  return (request, response) => {
    if (hostsOf(request.rawHeaders) <= 1) return handler(request, response)
    const message = 'the request has more than one Host header'
    response.setHeader('Connection', 'close')
    sendProblem(request, response, { status: 400, error: 'bad_request', message })
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

const HEALTH = '/-/health'

/** The handler, but on a connection that is kept for the health page a 503 for everything else, and the end of it. */
export function withReserve(handler: HttpHandler): HttpHandler {
  return (request, response) => {
    if (!isReserved(request.socket)) return handler(request, response)
    response.setHeader('Connection', 'close')
    if (request.url === HEALTH) return handler(request, response)
    const message = 'all connections of this mirror are in use (server.maxConnections)'
    const headers = { 'Retry-After': '5' }
    sendProblem(request, response, { status: 503, error: 'busy', message, headers })
  }
}

/** The handler with a line in the log for each request, while the log's level is that low. */
export function traced(handler: HttpHandler, log: ServerLog | null, now: () => number): HttpHandler {
  if (log === null) return handler
  return (request, response) => {
    if (!log.isLevelEnabled('debug')) return handler(request, response)
    const { method, url } = request
    const started = now()
    response.on('close', () => {
      const { statusCode, writableFinished } = response
      const fields = {
        method,
        url: withoutValues(url ?? ''),
        statusCode,
        finished: writableFinished,
        ms: now() - started,
      }
      log.debug(fields, 'request')
    })
    handler(request, response)
  }
}

const REFUSALS: Readonly<Partial<Record<string, readonly [string, string]>>> = {
  HPE_HEADER_OVERFLOW: ['431 Request Header Fields Too Large', 'the request headers are too large'],
  ERR_HTTP_REQUEST_TIMEOUT: ['408 Request Timeout', 'the request did not come in time'],
}

/**
 * Answers what is not HTTP in the mirror's own form, after the answers to earlier requests on the connection, and closes
 * it. While answers are in progress nothing is read, so a timeout then is not the client's fault.
 */
export function refuseMalformed(error: Error, socket: Duplex): void {
  if (!socket.writable || systemCode(error) === 'ECONNRESET' || isHandshaking(socket)) {
    socket.destroy()
    return
  }
  if (systemCode(error) === 'ERR_HTTP_REQUEST_TIMEOUT' && isAnswering(socket)) return
  afterAnswers(socket, () => endMalformed(error, socket))
}

/** Reports whether a TLS handshake is not done: nothing can be sent then, and an answer would wait for its end for ever. */
function isHandshaking(socket: Duplex): boolean {
  return 'secureConnecting' in socket && socket.secureConnecting === true
}

function endMalformed(error: Error, socket: Duplex): void {
  if (!socket.writable) return
  const known = REFUSALS[systemCode(error) ?? '']
  const [status, message] = known ?? ['400 Bad Request', 'this is not a sound HTTP request']
  const body = JSON.stringify({ error: 'bad_request', message })
  const head = [
    `HTTP/1.1 ${status}`,
    'Content-Type: application/json',
    `Content-Length: ${Buffer.byteLength(body)}`,
    'Cache-Control: no-store',
    'Connection: close',
  ]
  socket.end(`${head.join('\r\n')}\r\n\r\n${body}`)
}

const SWEEP_MS = 20

/** What ends the connections of a server. */
interface Drained {
  readonly fastPath: FastPath
  readonly limit: ConnectionLimit
}

/**
 * Waits for `closed` while connections fall idle one by one, and cuts off what still runs after `graceMs`. Node only
 * closes the connections that are idle when it is called.
 */
export async function drain(
  server: Server,
  { fastPath, limit }: Drained,
  closed: Promise<unknown>,
  graceMs: number,
): Promise<void> {
  fastPath.close()
  const sweep = setInterval(() => {
    server.closeIdleConnections()
    limit.closeQuiet()
  }, SWEEP_MS)
  const end = setTimeout(() => {
    fastPath.cut()
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
