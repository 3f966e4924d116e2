import { type LookupAddress, type LookupOptions, lookup } from 'node:dns'
import { BlockList, isIP } from 'node:net'

/** Addresses that no document on the public internet can have: private, local, shared, reserved, multicast. */
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
    ['::', 96], // unspecified, loopback, and IPv4 in its oldest coat
    ['2001::', 23], // tunnels and other protocols
    ['64:ff9b::', 96], // stands for an IPv4 address that cannot be seen from here
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

/** Whether an IP address is not one of the public internet's; IPv4 in an IPv6 coat counts as IPv4. */
export function isPrivateAddress(address: string): boolean {
  const mapped = /^::ffff:(\d+\.\d+\.\d+\.\d+)$/i.exec(address)
  const plain = mapped?.[1] ?? address
  const family = isIP(plain)
  if (family === 0) return true
  if (family === 6 && /^::ffff:/i.test(plain)) return true
  return PRIVATE.check(plain, family === 6 ? 'ipv6' : 'ipv4')
}

/** Refuses to resolve a name to a private address; the connection then goes to the very address that was checked. */
export class PrivateAddressError extends Error {
  constructor(host: string, address: string) {
    super(`${host} is at ${address}, a private address`)
    this.name = 'PrivateAddressError'
  }
}

type Callback = (error: Error | null, address: string | LookupAddress[], family?: number) => void

/** `dns.lookup` for connections that must stay on the public internet. */
export function lookupPublic(host: string, options: LookupOptions, callback: Callback): void {
  lookup(host, { ...options, all: true }, (error, addresses) => {
    if (error !== null) return callback(error, [])
    const refused = addresses.find(({ address }) => isPrivateAddress(address))
    if (refused !== undefined) return callback(new PrivateAddressError(host, refused.address), [])
    const [first] = addresses
    if (options.all === true || first === undefined) return callback(null, addresses)
    callback(null, first.address, first.family)
  })
}
