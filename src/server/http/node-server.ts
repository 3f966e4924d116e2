import type { IncomingMessage, Server, ServerResponse } from 'node:http'
import type { Duplex } from 'node:stream'
import type { Config } from '../../config/schema.ts'
import type { CertificateFollower } from '../../base/certificate.ts'
import { type ResponseAccount, countedResponses } from '../../base/connections/responses.ts'
import { isReserved } from '../../base/connections/limit.ts'
import { type HttpHandler, createServer, withOneHost } from '../../base/connections/server.ts'
import { systemCode } from '../../base/errors.ts'
import { type ServerLog, sendProblem } from './problems.ts'
import { HEADERS_MS } from './fast-path.ts'
import { afterAnswers, limitPipelining, isAnswering } from '../../base/connections/pipelining.ts'
import { withoutValues } from './request-target.ts'

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
  const paced = limitPipelining(withOneHost(handler, refuseHosts))
  const { certFile, keyFile } = settings
  const files = certFile === null || keyFile === null ? null : { certFile, keyFile }
  const tls = files === null ? null : { files, section: 'server', log: tools.log }
  const { server, certificate } = createServer(paced, options, tls)
  if (certificate !== null) tools.certificates.push(certificate)
  server.on('checkExpectation', paced)
  server.timeout = STALL_MS
  return server
}

function refuseHosts(request: IncomingMessage, response: ServerResponse): void {
  const message = 'the request has no Host header, or more than one'
  response.setHeader('Connection', 'close')
  sendProblem(request, response, { status: 400, error: 'bad_request', message })
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
