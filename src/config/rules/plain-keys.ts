import { isLoopbackHost } from '../kinds/urls.ts'
import type { Config } from '../schema.ts'

/** What to do where keys can be read on the network. */
export const HIDE_KEYS =
  'Set server.certFile and server.keyFile; or let a reverse proxy end TLS, and set server.publicUrl to its https:// address; or set ' +
  'server.listen to 127.0.0.1 and a port.'

/**
 * Returns a warning where clients send their keys (Basic and Bearer) over plain http to an address that other machines reach; null
 * where they do not. A `server.publicUrl` with https says that a reverse proxy ends TLS before it.
 */
export function warnOfPlainKeys({
  server: { host, socket, certFile, publicUrl },
}: Pick<Config, 'server'>): string | null {
  const own = host.includes(':') && !host.startsWith('[') ? `[${host}]` : host
  const isHidden = certFile !== null || publicUrl?.startsWith('https:') === true
  if (socket !== null || isHidden || isLoopbackHost(own)) return null
  return `server.listen has ${host}, and it serves plain http: the keys that clients send (Basic and Bearer) can be read on the network`
}
