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

/** Reports whether a host of a URL, or an address, is trusted. */
export type Trusted = (host: string) => boolean

/** Creates the rule of `network.trusted`: names of hosts (`*` for any, `*.corp.example` for all below), addresses, networks. */
export function createTrusted(entries: readonly string[]): Trusted {
  const networks = new BlockList()
  const names: string[] = []
  for (const entry of entries) {
    const [address = '', bits] = entry.split('/')
    const family = isIPv6(address) ? 'ipv6' : 'ipv4'
    if (isIP(address) === 0) names.push(entry.toLowerCase())
    else networks.addSubnet(address, Number(bits ?? (family === 'ipv6' ? 128 : 32)), family)
  }
  return (host) => {
    const plain = host.replace(/^\[|\]$/g, '').toLowerCase()
    if (names.some((name) => matches(name, plain))) return true
    return isIP(plain) !== 0 && networks.check(plain, isIPv6(plain) ? 'ipv6' : 'ipv4')
  }
}

function matches(name: string, host: string): boolean {
  if (name === '*' || name === host) return true
  return name.startsWith('*.') && host.endsWith(name.slice(1))
}
