import { lookup } from 'node:dns/promises'
import { type Socket, connect, isIP } from 'node:net'
import { type TLSSocket, connect as connectTls } from 'node:tls'
import type { Config } from '../../../config/schema.ts'
import { authoritiesOf, createTransport } from '../../../upstream/http/transport.ts'
import type { PathAnswer } from '../world.ts'
import { hostAndPort } from './targets.ts'

/** Returns the addresses of a URL's host. Rejects with the resolver's error. */
export async function resolveHost(url: URL): Promise<string[]> {
  const found = await lookup(hostAndPort(url).host, { all: true })
  return found.map(({ address }) => address)
}

/** Opens a TCP connection to a URL's host and closes it. Rejects with the system's error. */
export async function tryTcp(url: URL, timeoutMs: number): Promise<void> {
  const { host, port } = hostAndPort(url)
  const socket = connect({ host, port })
  await opened(socket, 'connect', timeoutMs)
  socket.destroy()
}

/** The certificate that a host presented. */
interface Presented {
  readonly subject: string
  readonly issuer: string
  /** As OpenSSL writes it: `May  1 12:00:00 2027 GMT`. */
  readonly validTo: string
}

/** Makes a TLS connection with the trusted authorities of the settings. Rejects when the certificate is refused. */
export async function tryTls(url: URL, upstream: Config['upstream'], timeoutMs: number): Promise<Presented> {
  const { host, port } = hostAndPort(url)
  const ca = authoritiesOf(upstream)
  const name = isIP(host) === 0 ? { servername: host } : {}
  const socket: TLSSocket = connectTls({ host, port, ...name, ...(ca && { ca }) })
  await opened(socket, 'secureConnect', timeoutMs)
  const { subject, issuer, valid_to: validTo } = socket.getPeerCertificate()
  socket.destroy()
  return { subject: nameIn(subject), issuer: nameIn(issuer), validTo }
}

function nameIn(name: { CN?: string | string[]; O?: string | string[] } | undefined): string {
  const first = name?.CN ?? name?.O ?? 'without a name'
  return Array.isArray(first) ? first.join(' ') : first
}

function opened(socket: Socket, event: string, timeoutMs: number): Promise<void> {
  return new Promise((resolve, reject) => {
    socket.once(event, () => resolve())
    socket.once('error', reject)
    socket.setTimeout(timeoutMs, () => {
      socket.destroy(new DOMException(`no connection within ${timeoutMs} ms`, 'TimeoutError'))
    })
  })
}

/** Sends one request through the proxy of the settings and discards the body. Rejects with the network's error. */
export async function tryRequest(
  url: URL,
  upstream: Config['upstream'],
  userAgent: string,
  method: 'GET' | 'OPTIONS' = 'GET',
): Promise<PathAnswer> {
  const transport = createTransport(upstream)
  try {
    const headers = { 'user-agent': userAgent, 'accept-encoding': 'identity' }
    const signal = AbortSignal.timeout(upstream.requestTimeoutMs)
    const answer = await transport.send({ method, url, headers, body: null }, signal)
    answer.body.destroy()
    const { allow } = answer.headers
    return { status: answer.status, allow: typeof allow === 'string' ? allow : null }
  } finally {
    await transport.close()
  }
}
