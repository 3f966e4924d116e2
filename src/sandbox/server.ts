import { type Server, createServer } from 'node:http'
import type { AddressInfo } from 'node:net'
import { type Faults, createFaults } from './faults.ts'
import { type Feed, createFeed } from './feed.ts'
import { type Context, handle } from './handler.ts'
import { type RequestLog, createRequestLog } from './request-log.ts'

/** Everything has a default: 500 generated records of seed 1 on a free port of 127.0.0.1. */
export interface SandboxOptions {
  seed?: number
  records?: number
  /** Generated records of more than 500 KB; default 2 from 200 records on, else 0. */
  large?: number
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
  /** ETag and Last-Modified; default true. */
  validators?: boolean
  /** gzip for JSON on demand; default true. */
  gzip?: boolean
  /** Serve the legacy `/external/cve_feed`; default true. */
  cveFeed?: boolean
}

/** A running stand-in for the service's public feeds. */
export interface Sandbox {
  /** `http://host:port`, no slash at the end. */
  url: string
  port: number
  feed: Feed
  faults: Faults
  requests: RequestLog
  close(): Promise<void>
}

/** Starts a sandbox. Rejects when the archive cannot be read or the address cannot be had. */
export async function createSandbox(options: SandboxOptions = {}): Promise<Sandbox> {
  const context = await createContext(options)
  const { feed, source, faults, requests } = context
  const server = createServer({ keepAliveTimeout: 65_000 }, (request, response) => {
    handle(context, request, response).catch((error: unknown) => {
      response.destroy(error instanceof Error ? error : new Error(String(error)))
    })
  })
  const host = options.host ?? '127.0.0.1'
  const port = await listen(server, host, options.port ?? 0)
  const shown = host.includes(':') ? `[${host}]` : host
  const close = (): Promise<void> => {
    source.stop()
    return new Promise((resolve) => {
      server.close(() => resolve())
      server.closeAllConnections()
    })
  }
  return { url: `http://${shown}:${port}`, port, feed, faults, requests, close }
}

async function createContext(options: SandboxOptions): Promise<Context> {
  const { seed = 1, records = 500, now = Date.now } = options
  const large = options.large ?? (records >= 200 ? 2 : 0)
  const { feed, source, generate } = createFeed({ seed, records, large, now })
  if (options.osvZip === undefined) await generate()
  else await feed.load(options.osvZip, options.osvIndex)
  const { ranges = true, validators = true, gzip = true, cveFeed = true } = options
  const policy = { ranges, validators, gzip }
  const faults = createFaults()
  return { feed, source, faults, requests: createRequestLog(), policy, cveFeed, now }
}

async function listen(server: Server, host: string, port: number): Promise<number> {
  await new Promise<void>((resolve, reject) => {
    server.once('error', reject)
    server.listen(port, host, () => resolve())
  })
  return (server.address() as AddressInfo).port // a TCP server that listens has such an address
}
