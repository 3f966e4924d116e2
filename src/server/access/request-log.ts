import { randomUUID } from 'node:crypto'
import type { IncomingMessage } from 'node:http'
import type { Config } from '../../config/schema.ts'
import { createTrust } from '../http/client-address.ts'
import { readForwarding } from '../http/forwarded.ts'
import type { HttpHandler } from '../../base/connections/server.ts'
import type { ServerLog } from '../http/problems.ts'
import { withoutValues } from '../http/request-target.ts'

/** What the log of requests is made with. */
interface RequestLogOptions {
  readonly config: Pick<Config, 'log' | 'server'>
  readonly log: ServerLog | null
}

const keys = new WeakMap<IncomingMessage, string>()

/** Notes the key that let a request in, for its line in the log. */
export function noteKey(request: IncomingMessage, title: string): void {
  keys.set(request, title)
}

/** A client's own id of a request is repeated only in this form: it also goes into the log. */
const REQUEST_ID = /^[\w.:/+=-]{1,128}$/
/** W3C Trace Context, section 3.2. */
const TRACE_PARENT = /^[\da-f]{2}-[\da-f]{32}-[\da-f]{16}-[\da-f]{2}$/

/**
 * The handler, with the client's `X-Request-Id` and `traceparent` repeated in the answer and, while `log.access` is true, a
 * line in the log for each answer; a request without an id gets one then.
 */
export function withRequestLog({ config, log }: RequestLogOptions, handler: HttpHandler): HttpHandler {
  const trusted = createTrust(config.server.trustProxy)
  return (request, response) => {
    const { headers, method, url = '', socket } = request
    const isLogged = log !== null && config.log.access
    const given = headers['x-request-id']
    const own = typeof given === 'string' && REQUEST_ID.test(given) ? given : null
    const id = own ?? (isLogged ? randomUUID() : null)
    if (id !== null) response.setHeader('X-Request-Id', id)
    const trace = headers['traceparent']
    const isTraced = typeof trace === 'string' && TRACE_PARENT.test(trace)
    if (isTraced) response.setHeader('traceparent', trace)
    if (!isLogged) return handler(request, response)
    const started = performance.now()
    const before = socket.bytesWritten
    const path = withoutValues(url)
    const { client } = readForwarding(socket.remoteAddress, request.headersDistinct, trusted)
    response.once('close', () => {
      const status = response.statusCode
      const fields = {
        client,
        key: keys.get(request) ?? null,
        method,
        path,
        status,
        bytes: socket.bytesWritten - before,
        finished: response.writableFinished,
        ms: Math.round((performance.now() - started) * 10) / 10,
        requestId: id,
        ...(isTraced && { traceparent: trace }),
      }
      log.info(fields, `${method} ${path} ${status}`)
    })
    handler(request, response)
  }
}
