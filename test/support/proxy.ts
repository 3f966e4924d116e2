import { type IncomingMessage, type ServerResponse, createServer, request } from 'node:http'
import { type Socket, connect } from 'node:net'
import type { Duplex } from 'node:stream'
import { onTestFinished } from 'vitest'
import { listen, stop } from './origin.ts'

/** A forward proxy on the loopback; gone when the test ends. */
export interface Proxy {
  /** `http://127.0.0.1:port`. */
  url: string
  port: number
  /** What it was asked to do: `CONNECT host:port` or `GET http://host:port/path`. */
  asked: string[]
}

/** Speaks both forms: CONNECT tunnels and requests with an absolute URL. Asks for `credentials` when given. */
export async function createProxy({ credentials = '' } = {}): Promise<Proxy> {
  const asked: string[] = []
  const sockets = new Set<Duplex>()
  const wanted = `Basic ${Buffer.from(credentials).toString('base64')}`
  const allowed = ({ headers }: IncomingMessage): boolean =>
    credentials === '' || headers['proxy-authorization'] === wanted

  const server = createServer((incoming, response) => {
    asked.push(`${incoming.method ?? ''} ${incoming.url ?? ''}`)
    if (allowed(incoming)) forward(incoming, response)
    else response.writeHead(407, { 'Proxy-Authenticate': 'Basic' }).end()
  })
  server.on('connect', (incoming: IncomingMessage, client: Duplex) => {
    asked.push(`CONNECT ${incoming.url ?? ''}`)
    sockets.add(client)
    client.on('error', () => client.destroy())
    if (allowed(incoming)) sockets.add(tunnel(incoming.url ?? '', client))
    else client.end('HTTP/1.1 407 Proxy Authentication Required\r\n\r\n')
  })
  const port = await listen(server)
  onTestFinished(async () => {
    for (const socket of sockets) socket.destroy()
    await stop(server)
  })
  return { url: `http://127.0.0.1:${port}`, port, asked }
}

function forward(incoming: IncomingMessage, response: ServerResponse): void {
  const { 'proxy-authorization': _secret, ...headers } = incoming.headers
  const url = new URL(incoming.url ?? '')
  url.hostname = resolved(url.hostname)
  const outgoing = request(url, { method: incoming.method, headers }, (answer) => {
    response.writeHead(answer.statusCode ?? 502, answer.headers)
    answer.pipe(response)
  })
  outgoing.on('error', () => response.writeHead(502).end())
  incoming.pipe(outgoing)
}

/** This proxy finds every host of the test domain on this machine: what is on loopback itself is never proxied. */
function resolved(hostname: string): string {
  return hostname === 'localhost' || hostname.endsWith('.test') ? '127.0.0.1' : hostname
}

function tunnel(authority: string, client: Duplex): Socket {
  const { hostname, port } = new URL(`http://${authority}`)
  const target = connect(Number(port), resolved(hostname), () => {
    client.write('HTTP/1.1 200 Connection Established\r\n\r\n')
    target.pipe(client).pipe(target)
  })
  target.on('error', () => client.destroy())
  return target
}
