import type { IncomingMessage } from 'node:http'
import { isIPv6 } from 'node:net'
import { type TrustedProxies, plainAddress } from './addresses.ts'
import { type HeaderLists, isHost, readForwarding } from './forwarded.ts'

/** What a request tells of the way it came. */
export interface RequestSource {
  readonly headers: HeaderLists
  /** The address at the other end of the connection. */
  readonly peer: string | undefined
  /** The address and port of this end. */
  readonly local: { readonly address: string; readonly port: number }
  readonly scheme: 'http' | 'https'
}

/** Whom to believe about where the mirror is reached. */
export interface BaseUrlOptions {
  /** `server.publicUrl`: settles the matter. */
  readonly publicUrl: string | null
  readonly trusted: TrustedProxies
}

/**
 * The URL under which this client reaches the mirror, without a slash at the end: `server.publicUrl`; else what trusted
 * proxies say; else the Host header, the place that the client itself asked. Whatever is not plainly a host is passed
 * over, so that the answer never holds a character that it should not; at last the listening address itself is left.
 */
export function baseUrl({ publicUrl, trusted }: BaseUrlOptions, arrival: RequestSource): string {
  if (publicUrl !== null) return publicUrl.replace(/\/+$/, '')
  const forwarded = readForwarding(arrival.peer, arrival.headers, trusted)
  const host = forwarded.host ?? askedHost(arrival.headers) ?? ownHost(arrival.local)
  return `${forwarded.scheme ?? arrival.scheme}://${host}${forwarded.prefix}`
}

function askedHost(headers: HeaderLists): string | null {
  const [host, another] = headers['host'] ?? []
  return host !== undefined && another === undefined && isHost(host) ? host : null
}

function ownHost({ address, port }: RequestSource['local']): string {
  const plain = plainAddress(address)
  return `${isIPv6(plain) ? `[${plain}]` : plain}:${port}`
}

/** The arrival of a request on Node's own server. */
export function arrivalOf({ headersDistinct, socket }: IncomingMessage): RequestSource {
  const { localAddress = '127.0.0.1', localPort = 80, remoteAddress } = socket
  return {
    headers: headersDistinct,
    peer: remoteAddress,
    local: { address: localAddress, port: localPort },
    scheme: 'encrypted' in socket && socket.encrypted === true ? 'https' : 'http',
  }
}
