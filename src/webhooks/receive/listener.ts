import type { IncomingMessage, RequestListener, Server, ServerOptions } from 'node:http'
import { type Server as TlsServer, createServer as createTlsServer } from 'node:https'
import { isIPv6 } from 'node:net'
import {
  type CertificateFiles,
  type CertificateFollower,
  followCertificate,
  readCertificate,
} from '../../base/certificate.ts'
import type { Account } from '../../base/connections/account.ts'
import { bodyTimeMs } from '../../base/connections/bodies.ts'
import { MAX_DELIVERY_BYTES } from './body-reader.ts'
import { http } from '../../base/connections/http.ts'
import { type ConnectionOptions, limitConnections } from '../../base/connections/limit.ts'
import type { Holder } from '../../base/connections/ledger.ts'
import { clientNetwork } from '../../base/connections/network.ts'
import { limitPipelining } from '../../base/connections/pipelining.ts'
import { countedResponses } from '../../base/connections/responses.ts'
import { MirrorError, messageOf } from '../../base/errors.ts'
import type { Logger } from '../../base/log.ts'

/** Where to listen, and with which certificate. */
export interface ListenerOptions {
  readonly host: string
  /** 0 takes any free port. */
  readonly port: number
  /** PEM files; null: plain http. */
  readonly tls: CertificateFiles | null
  readonly maxConnections: number
  readonly maxConnectionsPerAddress: number
  /** What bodies and unsent answers count in; they are not counted when not given. */
  readonly account?: Account
  /** Counts connections that were closed or refused for want of places. */
  readonly onClosed?: ConnectionOptions['onClosed']
  readonly handler: RequestListener
  readonly log: Pick<Logger, 'info' | 'warn' | 'error'> | null
  /** How often the files are looked at for a renewed certificate, milliseconds; every minute when not given. */
  readonly renewalMs?: number
}

/** A server of its own for deliveries. */
export interface Listener {
  /** Such as https://localhost:8443 . */
  readonly url: string
  /** Takes a renewed certificate at once; nothing without TLS. */
  renew(): void
  /** Lets requests in flight end, and cuts off what is left after the grace time. */
  close(graceMs: number): Promise<void>
}

/** Deliveries are small and their senders are programs: no head of theirs takes this long. */
const LIMITS = {
  maxHeaderSize: 16 * 1024,
  headersTimeout: 10_000,
  requestTimeout: 2 * bodyTimeMs(MAX_DELIVERY_BYTES), // after the receiver, which ends a body that comes too slowly
  keepAliveTimeout: 75_000,
  connectionsCheckingInterval: 5_000,
  handshakeTimeout: 10_000,
}

/** Starts to listen. Throws `config` when the address or the certificate cannot be used. */
export async function startListener(options: ListenerOptions): Promise<Listener> {
  const { host, port, tls, handler, maxConnections } = options
  const limited = limitPipelining(withOneHost(handler))
  const secured = tls === null ? null : createTls(tls, limited, options)
  const server = secured === null ? http.createServer(limitsOf(options), limited) : secured.server
  // A sender may close its side when it has sent a delivery, and still wait for the answer.
  Object.assign(server, { httpAllowHalfOpen: true })
  const limit = limitConnections(server, {
    most: maxConnections,
    mostPerAddress: options.maxConnectionsPerAddress,
    log: options.log,
    onClosed: options.onClosed ?? (() => undefined),
  })
  await listening(server, host, port).catch((error: unknown) => {
    secured?.certificate.stop()
    throw error
  })
  const bound = server.address()
  const at = typeof bound === 'object' && bound !== null ? bound.port : port
  return {
    url: `${tls === null ? 'http' : 'https'}://${shownHost(host)}:${at}`,
    renew: () => secured?.certificate.renew(),
    async close(graceMs) {
      secured?.certificate.stop()
      const closed = new Promise((resolve) => server.close(resolve))
      server.closeIdleConnections()
      const sweep = setInterval(() => {
        server.closeIdleConnections()
        limit.closeQuiet()
      }, 20)
      const cut = setTimeout(() => limit.closeAll(), graceMs)
      await closed
      clearInterval(sweep)
      clearTimeout(cut)
    },
  }
}

/** Returns the host of an address to show; a wildcard address is shown as localhost. */
function shownHost(host: string): string {
  if (host === '0.0.0.0' || host === '::') return 'localhost'
  return isIPv6(host) ? `[${host}]` : host
}

/**
 * Tries the certificate and the address, and gives the address back, before a start changes anything. Throws `config` as
 * `startListener` does.
 */
export async function tryListener(options: Pick<ListenerOptions, 'host' | 'port' | 'tls'>): Promise<void> {
  if (options.tls !== null) readCertificate(options.tls, SECTION)
  const server = http.createServer()
  server.on('connection', (socket) => socket.destroy())
  await listening(server, options.host, options.port)
  await new Promise((resolve) => server.close(resolve))
}

function limitsOf({ account }: ListenerOptions): ServerOptions {
  if (account === undefined) return LIMITS
  return { ...LIMITS, ServerResponse: countedResponses({ account, holderOf }) }
}

/** Names the sender of a delivery; no key of the mirror comes with one. */
function holderOf({ socket }: IncomingMessage): Holder {
  return { address: () => clientNetwork(socket.remoteAddress ?? ''), hasKey: () => false }
}

/** 400 for a request with more than one `Host`, as on the main listener. */
function withOneHost(handler: RequestListener): RequestListener {
  return (request, response) => {
    const hosts = request.rawHeaders.filter((name, at) => at % 2 === 0 && /^host$/i.test(name))
    if (hosts.length <= 1) return handler(request, response)
    response.writeHead(400, { 'Content-Length': 0, Connection: 'close' }).end()
  }
}

/** Creates the server with its certificate. Throws `config` for files that cannot be read or used together. */
function createTls(
  files: CertificateFiles,
  handler: RequestListener,
  options: ListenerOptions,
): { readonly server: TlsServer; readonly certificate: CertificateFollower } {
  const { log, renewalMs } = options
  const used = readCertificate(files, SECTION)
  const server = createTlsServer({ ...limitsOf(options), ...used, allowHalfOpen: true }, handler)
  const every = renewalMs === undefined ? {} : { everyMs: renewalMs }
  const certificate = followCertificate(server, files, { section: SECTION, used, log, ...every })
  return { server, certificate }
}

const SECTION = 'webhooks'

async function listening(server: Server, host: string, port: number): Promise<void> {
  try {
    await new Promise<void>((resolve, reject) => {
      server.once('error', reject).listen({ host, port }, resolve)
    })
  } catch (error) {
    throw new MirrorError(
      'config',
      `${host} port ${port} cannot be listened on for webhooks (${messageOf(error)}): ` + 'set webhooks.listen',
      { cause: error },
    )
  }
}
