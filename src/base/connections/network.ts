import { BlockList, isIP, isIPv4, isIPv6 } from 'node:net'

/** The address without what means nothing here: a zone, brackets, or the IPv6 form of an IPv4 one. */
export function plainAddress(address: string): string {
  const bare = address.replace(/^\[(.*)\]$/, '$1').replace(/%.*$/, '')
  const mapped = /^::ffff:([\d.]+)$/i.exec(bare)?.[1]
  return mapped !== undefined && isIPv4(mapped) ? mapped : bare.toLowerCase()
}

/**
 * Returns the network that counts as one client: the address itself in IPv4, its /64 in IPv6, where one machine has more
 * addresses than can be counted separately.
 */
export function clientNetwork(address: string): string {
  const plain = plainAddress(address)
  if (!isIPv6(plain)) return plain
  const [head = '', tail] = plain.split('::', 2)
  const groups = head === '' ? [] : head.split(':')
  const behind = tail === undefined || tail === '' ? [] : tail.split(':')
  const dotted = plain.includes('.') ? 1 : 0 // an IPv4 address at the end counts as two groups
  while (groups.length + behind.length + dotted < 8) groups.push('0')
  const network = [...groups, ...behind].slice(0, 4)
  return `${network.map((group) => parseInt(group, 16).toString(16)).join(':')}::/64`
}

/** An address, which is a network of its own, or a network. */
interface Network {
  readonly address: string
  readonly bits: number
  readonly family: 'ipv4' | 'ipv6'
}

/** Reads `10.0.0.7`, `10.0.0.0/8` or `fd00::/8`; null for anything else. */
export function readNetwork(text: string): Network | null {
  const [, address = '', length] = /^([^/%]+)(?:\/(\d{1,3}))?$/.exec(text) ?? []
  const family = isIPv4(address) ? 'ipv4' : 'ipv6'
  const most = family === 'ipv4' ? 32 : 128
  const bits = Number(length ?? most)
  return isIP(address) === 0 || bits > most ? null : { address, bits, family }
}

/** Creates what reports whether an address is in one of these networks; entries that are none are passed over. */
export function createNetworks(entries: readonly string[]): (address: string) => boolean {
  const list = new BlockList()
  for (const { address, bits, family } of entries.flatMap((entry) => readNetwork(entry) ?? []))
    list.addSubnet(address, bits, family)
  return (address) => {
    const plain = plainAddress(address)
    return isIP(plain) !== 0 && list.check(plain, isIPv6(plain) ? 'ipv6' : 'ipv4')
  }
}

/** Reports whether a host of a URL, or an address, is trusted. */
export type Trusted = (host: string) => boolean

/** Creates the rule of `network.trusted`: names of hosts (`*` for any, `*.corp.example` for all below), addresses, networks. */
export function createTrusted(entries: readonly string[]): Trusted {
  const isWithin = createNetworks(entries)
  const names = entries.filter((entry) => readNetwork(entry) === null).map((entry) => entry.toLowerCase())
  return (host) => {
    const plain = plainAddress(host)
    return names.some((name) => matches(name, plain)) || isWithin(plain)
  }
}

function matches(name: string, host: string): boolean {
  if (name === '*' || name === host) return true
  return name.startsWith('*.') && host.endsWith(name.slice(1))
}
