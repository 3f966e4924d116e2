import type { IncomingMessage, RequestListener, Server, ServerOptions, ServerResponse } from 'node:http'
import { type CertificateFiles, readCertificate } from '../../base/certificate.ts'
import type { Account } from '../../base/connections/account.ts'
import { bodyTimeMs } from '../../base/connections/bodies.ts'
import { MAX_DELIVERY_BYTES } from './body-reader.ts'
import { http } from '../../base/connections/http.ts'
import { type ConnectionOptions, limitConnections } from '../../base/connections/limit.ts'
import type { Holder } from '../../base/connections/ledger.ts'
import { clientNetwork } from '../../base/connections/network.ts'
import { limitPipelining } from '../../base/connections/pipelining.ts'
import { countedResponses } from '../../base/connections/responses.ts'
import { createServer, drain, listenOn, shownHost, withOneHost } from '../../base/connections/server.ts'
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
}

/** Starts to listen. Throws `config` when the address or the certificate cannot be used. */
export async function startListener(options: ListenerOptions): Promise<Listener> {
  const { host, port, tls: files, handler, log, renewalMs } = options
  const every = renewalMs === undefined ? {} : { everyMs: renewalMs }
  const tls = files === null ? null : { files, section: SECTION, log, ...every }
  const { server, certificate } = createServer(
    limitPipelining(withOneHost(handler, refuseHosts)),
    limitsOf(options),
    tls,
  )
  const limit = limitConnections(server, {
    most: options.maxConnections,
    mostPerAddress: options.maxConnectionsPerAddress,
    log,
    onClosed: options.onClosed ?? (() => undefined),
  })
  await listening(server, host, port).catch((error: unknown) => {
    certificate?.stop()
    throw error
  })
  const bound = server.address()
  const at = typeof bound === 'object' && bound !== null ? bound.port : port
  return {
    url: `${tls === null ? 'http' : 'https'}://${shownHost(host)}:${at}`,
    renew: () => certificate?.renew(),
    close(graceMs) {
      certificate?.stop()
      const closed = new Promise((resolve) => server.close(resolve))
      return drain(server, limit, closed, graceMs)
    },
  }
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

/** As on the main listener. */
function refuseHosts(_: IncomingMessage, response: ServerResponse): void {
  response.writeHead(400, { 'Content-Length': 0, Connection: 'close' }).end()
}

const SECTION = 'webhooks'

async function listening(server: Server, host: string, port: number): Promise<void> {
  try {
    await listenOn(server, { host, port })
  } catch (error) {
    throw new MirrorError(
      'config',
      `${host} port ${port} cannot be listened on for webhooks (${messageOf(error)}): ` + 'set webhooks.listen',
      { cause: error },
    )
  }
}
