import { type Faults, createFaults } from './faults/schedule.ts'
import type { Feed } from './feed/types.ts'
import { createFeed } from './feed/feed.ts'
import type { Context } from './context.ts'
import { handle } from './handler.ts'
import { type Listeners, createListeners } from './listeners.ts'
import type { Policy } from './http/negotiate.ts'
import { type RequestLog, createRequestLog } from './request-log.ts'
import { handleSurface } from './service/call.ts'
import type { ServiceOptions } from './service/options.ts'
import { type Addresses, type Service, type ServiceParts, createService } from './service/service.ts'
import { type Shape, shapeOf } from './service/shapes/shape.ts'
import type { Surface } from './service/surface.ts'

/** Everything has a default: 500 generated records of seed 1 on a free port of 127.0.0.1. */
export interface SandboxOptions {
  seed?: number
  records?: number
  /** Generated records of more than 500 KB; default 2 from 200 records on, else 0. */
  large?: number
  /** About every sixth record is without its `schema_version`, which scanners then refuse; default false. */
  malformed?: boolean
  /** An archive whose records are served instead of generated ones, byte for byte. */
  osvZip?: string
  /** The index that belongs to `osvZip`; without it one is derived from the records. */
  osvIndex?: string
  host?: string
  port?: number
  /** Unix milliseconds; also the Date header's clock. */
  now?: () => number
  /** Range requests on all.zip; default true. */
  ranges?: boolean
  /** ETag and Last-Modified; default as the service's shape has it. */
  validators?: boolean
  /** gzip for JSON on demand; default as the service's shape has it. */
  gzip?: boolean
  /** Serve the legacy `/external/cve_feed`; default true. */
  cveFeed?: boolean
  /** How many of the newest requests the log keeps; default 20,000. */
  keepRequests?: number
  /** The surfaces behind credentials, the package catalog and the artifacts; false for the feeds alone. */
  service?: ServiceOptions | false
}

/** A running stand-in for the service. Of the addresses, those of a service that is switched off are "". */
export interface Sandbox extends Addresses {
  /** `http://host:port`, no slash at the end. */
  url: string
  port: number
  feed: Feed
  /** Throws when the service is switched off. */
  readonly service: Service
  faults: Faults
  requests: RequestLog
  close(): Promise<void>
}

/** Starts a sandbox. Rejects when the archive cannot be read or an address is not available. */
export async function createSandbox(options: SandboxOptions = {}): Promise<Sandbox> {
  const context = await createContext(options)
  const { feed, source, faults, requests, service } = context
  const listeners = createListeners(options.host ?? '127.0.0.1')
  const close = async (): Promise<void> => {
    source.stop()
    await service?.stop()
    await listeners.close()
  }
  try {
    const main = await listeners.open(options.port ?? 0, (request, response) => handle(context, request, response))
    const addresses = { ...NOWHERE, url: main.url }
    if (service !== undefined) {
      const ports = options.service === false ? undefined : options.service?.ports
      Object.assign(addresses, await openService(context, service, listeners, ports))
      Object.assign(service.addresses, addresses)
    }
    return {
      ...addresses,
      port: main.port,
      feed,
      faults,
      requests,
      close,
      get service() {
        if (service === undefined) throw new Error('the sandbox was started with service: false')
        return service.service
      },
    }
  } catch (error) {
    await close()
    throw error
  }
}

const NOWHERE: Addresses = {
  url: '',
  catalogUrl: '',
  artifactUrl: '',
  identityUrl: '',
  authUrl: '',
}

async function openService(
  context: Context,
  { surfaces }: ServiceParts,
  listeners: Listeners,
  ports: ServiceOptions['ports'] = {},
): Promise<Omit<Addresses, 'url'>> {
  const at = (surface: Surface, port = 0): Promise<{ url: string }> =>
    listeners.open(port, (request, response) => handleSurface(context, surface, request, response))
  const catalog = await at(surfaces.catalog, ports.catalog)
  const artifacts = await at(surfaces.artifacts, ports.artifacts)
  const identity = await at(surfaces.identity, ports.identity)
  return {
    catalogUrl: catalog.url,
    artifactUrl: artifacts.url,
    identityUrl: `${identity.url}/v1`,
    authUrl: identity.url,
  }
}

async function createContext(options: SandboxOptions): Promise<Context> {
  const { seed = 1, records = 500, malformed = false, now: right = Date.now } = options
  const shape = shapeOf((options.service === false ? undefined : options.service?.shape) ?? 'wire')
  const now = (): number => right() + shape.http.clockSeconds * 1000
  const large = options.large ?? (records >= 200 ? 2 : 0)
  const { feed, source, generate } = createFeed({ seed, records, large, malformed, now, shape })
  if (options.osvZip === undefined) await generate()
  else await feed.load(options.osvZip, options.osvIndex)
  const { ranges = true, cveFeed = true } = options
  const policy = policyOf(options, shape, ranges)
  const faults = createFaults()
  const origin = { seed, records: options.osvZip === undefined ? records : 0, now: right }
  const service = options.service === false ? undefined : createService(options.service ?? {}, origin)
  const requests = createRequestLog(options.keepRequests)
  return { feed, source, faults, requests, policy, cveFeed, shape, now, service }
}

function policyOf({ validators, gzip }: SandboxOptions, { http }: Shape, ranges: boolean): Policy {
  const ownValidators = validators === true ? 'both' : 'none'
  const ownGzip = gzip === true ? 'asked' : 'never'
  return {
    ranges,
    validators: validators === undefined ? http.validators : ownValidators,
    gzip: gzip === undefined ? http.gzip : ownGzip,
    length: http.length,
  }
}
