import type { Config } from '../config/schema.ts'
import { withRequestLog } from './access/request-log.ts'
import { metricSurface } from './access/surface.ts'
import { type HttpHandler, traced } from './http/node-server.ts'
import type { ServerLog } from './http/problems.ts'
import type { MetricsPage } from './status/routes.ts'

/** The log and the counters of requests. */
interface Observers {
  readonly config: Config
  readonly log: ServerLog | null
  readonly now: () => number
  readonly metrics?: MetricsPage
}

/** The handler with what is counted and logged of each request. */
export function observed(options: Observers, handler: HttpHandler): HttpHandler {
  const { log, now, metrics } = options
  const seen = withRequestLog(options, warnOfProxy(options, handler))
  return counted(traced(seen, log, now), metrics)
}

/** The handler, and each of its answers counted when it has been sent or cut off. */
function counted(handler: HttpHandler, metrics: MetricsPage | undefined): HttpHandler {
  if (metrics === undefined) return handler
  return (request, response) => {
    const started = performance.now()
    const surface = metricSurface(request.url ?? '')
    response.once('close', () => {
      metrics.countAnswer(surface, response.statusCode, (performance.now() - started) / 1000)
    })
    handler(request, response)
  }
}

/** Logs once that forwarding headers are ignored because no setting trusts the proxy. */
function warnOfProxy({ config, log }: Observers, handler: HttpHandler): HttpHandler {
  let isLogged = config.server.trustProxy.length > 0
  return (request, response) => {
    const name = isLogged ? undefined : FORWARDING.find((one) => request.headers[one] !== undefined)
    if (name !== undefined) {
      isLogged = true
      const why = `a request has the header ${name}, which is ignored: server.trustProxy is not set`
      log?.warn({}, `${why}. Behind a reverse proxy set it to the proxy's address.`)
    }
    handler(request, response)
  }
}

const FORWARDING = [
  'forwarded',
  'x-forwarded-for',
  'x-forwarded-host',
  'x-forwarded-proto',
  'x-forwarded-prefix',
] as const
