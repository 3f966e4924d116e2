import { readFileSync } from 'node:fs'
import { type RequestListener, type Server, createServer } from 'node:http'
import { type Server as TlsServer, createServer as createTlsServer } from 'node:https'
import { type Socket, isIPv6 } from 'node:net'
import { type ConnectionOptions, limitConnections } from '../../core/connections.ts'
import { MirrorError, messageOf } from '../../core/errors.ts'
import type { Logger } from '../../core/log.ts'

/** Where to listen, and with which certificate. */
export interface ListenerOptions {
  readonly host: string
  /** 0 takes any free port. */
  readonly port: number
  /** PEM files; null: plain http. */
  readonly tls: { readonly certFile: string; readonly keyFile: string } | null
  readonly maxConnections: number
  readonly maxConnectionsPerAddress: number
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

/** A certificate is renewed every few weeks; a minute late is early enough. */
const RENEWAL_MS = 60_000
/** Deliveries are small and their senders are programs: no head or body of theirs takes this long. */
const LIMITS = {
  maxHeaderSize: 16 * 1024,
  headersTimeout: 10_000,
  requestTimeout: 20_000,
  keepAliveTimeout: 75_000,
  connectionsCheckingInterval: 5_000,
  handshakeTimeout: 10_000,
}

/** Starts to listen. Throws `config` when the address or the certificate cannot be used. */
export async function startListener(options: ListenerOptions): Promise<Listener> {
  const { host, port, tls, handler, maxConnections } = options
  const guarded = withOneHost(handler)
  const server = tls === null ? createServer(LIMITS, guarded) : createTls(tls, guarded)
  // A sender may close its side when it has sent a delivery, and still wait for the answer.
  Object.assign(server, { httpAllowHalfOpen: true })
  // Those in the midst of a TLS handshake are not known to the HTTP server.
  const sockets = new Set<Socket>()
  server.on('connection', (socket: Socket) => {
    sockets.add(socket)
    socket.once('close', () => sockets.delete(socket))
  })
  limitConnections(server, {
    ...{ most: maxConnections, mostPerAddress: options.maxConnectionsPerAddress },
    ...{ log: options.log, onClosed: options.onClosed ?? (() => undefined) },
  })
  await listening(server, host, port)
  const renew = tls === null ? () => undefined : renewer(server as TlsServer, tls, options.log)
  const renewal = tls && setInterval(renew, options.renewalMs ?? RENEWAL_MS)
  renewal?.unref()
  const bound = server.address()
  const shown =
    host === '0.0.0.0' || host === '::' ? 'localhost' : isIPv6(host) ? `[${host}]` : host
  const at = typeof bound === 'object' && bound !== null ? bound.port : port
  return {
    url: `${tls === null ? 'http' : 'https'}://${shown}:${at}`,
    renew,
    async close(graceMs) {
      if (renewal !== null) clearInterval(renewal)
      const closed = new Promise((resolve) => server.close(resolve))
      server.closeIdleConnections()
      const sweep = setInterval(() => server.closeIdleConnections(), 20)
      const cut = setTimeout(() => {
        server.closeAllConnections()
        for (const socket of sockets) socket.destroy()
      }, graceMs)
      await closed
      clearInterval(sweep)
      clearTimeout(cut)
    },
  }
}

/** 400 for a request with more than one `Host`, as on the main listener. */
function withOneHost(handler: RequestListener): RequestListener {
  return (request, response) => {
    const hosts = request.rawHeaders.filter((name, at) => at % 2 === 0 && /^host$/i.test(name))
    if (hosts.length <= 1) return handler(request, response)
    response.writeHead(400, { 'Content-Length': 0, Connection: 'close' }).end()
  }
}

/** Throws `config` for files that cannot be read, contain no certificate and key, or not of the same pair. */
function createTls(tls: Tls, handler: RequestListener): TlsServer {
  const files = readTls(tls)
  try {
    return createTlsServer(
      { ...LIMITS, ...files, minVersion: 'TLSv1.2', allowHalfOpen: true },
      handler,
    )
  } catch (error) {
    const message = `webhooks.certFile and webhooks.keyFile cannot be used together (${messageOf(error)})`
    throw new MirrorError('config', message, { cause: error })
  }
}

async function listening(server: Server, host: string, port: number): Promise<void> {
  try {
    await new Promise<void>((resolve, reject) => {
      server.once('error', reject).listen({ host, port }, resolve)
    })
  } catch (error) {
    throw new MirrorError(
      'config',
      `${host} port ${port} cannot be listened on for webhooks (${messageOf(error)}): ` +
        'set webhooks.port and webhooks.host',
      { cause: error },
    )
  }
}

type Tls = NonNullable<ListenerOptions['tls']>

function readTls({ certFile, keyFile }: Tls): { cert: Buffer; key: Buffer } {
  try {
    return { cert: readFileSync(certFile), key: readFileSync(keyFile) }
  } catch (error) {
    const message = `webhooks.certFile or webhooks.keyFile cannot be read (${messageOf(error)})`
    throw new MirrorError('config', message, { cause: error })
  }
}

/** Loads a renewed certificate; one that cannot be used is logged, and the previous one stays. */
function renewer(server: TlsServer, tls: Tls, log: ListenerOptions['log']): () => void {
  let loaded = readTls(tls)
  return () => {
    try {
      const found = readTls(tls)
      if (found.cert.equals(loaded.cert) && found.key.equals(loaded.key)) return
      loaded = found
      server.setSecureContext({ ...found, minVersion: 'TLSv1.2' })
      log?.info({ file: tls.certFile }, 'took the renewed certificate for webhooks')
    } catch (error) {
      log?.error(
        { file: tls.certFile },
        `the renewed certificate cannot be used: ${messageOf(error)}`,
      )
    }
  }
}
