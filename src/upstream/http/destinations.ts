import { type LookupAddress, type LookupOptions, lookup } from 'node:dns'
import { BlockList, isIP } from 'node:net'
import type { Trusted } from '../../base/connections/network.ts'
import { MirrorError } from '../../base/errors.ts'

/** Address ranges that are not on the public internet: private, local, shared, reserved, multicast. */
const PRIVATE = createPrivate()

function createPrivate(): BlockList {
  const list = new BlockList()
  const v4: [string, number][] = [
    ['0.0.0.0', 8],
    ['10.0.0.0', 8],
    ['100.64.0.0', 10],
    ['127.0.0.0', 8],
    ['169.254.0.0', 16],
    ['172.16.0.0', 12],
    ['192.0.0.0', 24],
    ['192.0.2.0', 24],
    ['192.168.0.0', 16],
    ['198.18.0.0', 15],
    ['198.51.100.0', 24],
    ['203.0.113.0', 24],
    ['224.0.0.0', 3],
  ]
  for (const [net, prefix] of v4) list.addSubnet(net, prefix, 'ipv4')
  const v6: [string, number][] = [
    ['::', 96], // unspecified, loopback, and IPv4-compatible addresses
    ['2001::', 23], // tunnels and other protocols
    ['64:ff9b::', 96], // NAT64: contains an IPv4 address
    ['64:ff9b:1::', 48],
    ['100::', 64],
    ['2001:db8::', 32],
    ['2002::', 16],
    ['fc00::', 7],
    ['fe80::', 10],
    ['fec0::', 10],
    ['ff00::', 8],
  ]
  for (const [net, prefix] of v6) list.addSubnet(net, prefix, 'ipv6')
  return list
}

/** Returns whether an IP address is not public; IPv4-mapped IPv6 addresses count as IPv4. */
export function isPrivateAddress(address: string): boolean {
  const mapped = /^::ffff:(\d+\.\d+\.\d+\.\d+)$/i.exec(address)
  const plain = mapped?.[1] ?? address
  const family = isIP(plain)
  if (family === 0) return true
  if (family === 6 && /^::ffff:/i.test(plain)) return true
  return PRIVATE.check(plain, family === 6 ? 'ipv6' : 'ipv4')
}

/** Thrown when a name resolves to a private address; a connection uses exactly the address that was checked. */
class PrivateAddressError extends Error {
  constructor(host: string, address: string) {
    super(`${host} is at ${address}, a private address`)
    this.name = 'PrivateAddressError'
  }
}

type Callback = (error: Error | null, address: string | LookupAddress[], family?: number) => void

/** Returns what does the same as `dns.lookup`, but only for public addresses, and for hosts and addresses that are trusted. */
export function lookupPublic(isTrusted: Trusted) {
  return (host: string, options: LookupOptions, callback: Callback): void => {
    lookup(host, { ...options, all: true }, (error, addresses) => {
      if (error !== null) return callback(error, [])
      const isRefused = (address: string): boolean => isPrivateAddress(address) && !isTrusted(address)
      const refused = isTrusted(host) ? undefined : addresses.find(({ address }) => isRefused(address))
      if (refused !== undefined) return callback(new PrivateAddressError(host, refused.address), [])
      const [first] = addresses
      if (options.all === true || first === undefined) return callback(null, addresses)
      callback(null, first.address, first.family)
    })
  }
}

/** A redirect to another host, where the service stores large documents. */
export class LeavingError extends MirrorError {
  /** Full target URL: it may contain a signature, so it is in no message. */
  readonly location: string
  constructor(message: string, location: string) {
    super('upstream_status', message)
    this.location = location
  }
}

/** Returns scheme, host and port of a URL, for messages: no path, no credentials. */
export function originOf(url: URL): string {
  return `${url.protocol}//${url.host}`
}

/** Returns whether a redirect stays on the same host and keeps encryption. */
export function sameHost(from: URL, to: URL): boolean {
  if (to.protocol === from.protocol) return to.host === from.host
  return from.protocol === 'http:' && to.protocol === 'https:' && to.hostname === from.hostname
}

/**
 * Returns the target of a redirect that may be followed: within the host, never from https to http, and with a
 * credential not to another port. Throws `upstream_status`; `setting` names the root.
 */
export function redirected(from: URL, location: string, setting: string, credential: boolean): URL {
  const to = URL.parse(location, from.href)
  const stays = to !== null && sameHost(from, to) && (!credential || to.host === from.host)
  if (stays) return to
  throw new LeavingError(
    `${from.pathname}: redirected to ${to === null ? 'nowhere' : originOf(to)}, and only redirects within ` +
      `${originOf(from)} are followed. If the service moved, set ${setting} to its new address.`,
    to?.href ?? '',
  )
}
