import { isIPv4, isIPv6 } from 'node:net'

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
