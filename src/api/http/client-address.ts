import { BlockList, isIP, isIPv4, isIPv6 } from 'node:net'
import { UNIX_PEER } from '../../core/connections/limit.ts'
import { MirrorError } from '../../core/errors.ts'

/** The address without what means nothing here: a zone, brackets, or the IPv6 form of an IPv4 one. */
export function plainAddress(address: string): string {
  const bare = address.replace(/^\[(.*)\]$/, '$1').replace(/%.*$/, '')
  const mapped = /^::ffff:([\d.]+)$/i.exec(bare)?.[1]
  return mapped !== undefined && isIPv4(mapped) ? mapped : bare.toLowerCase()
}

/** Whether an address is this machine talking to itself. */
export function isLoopbackAddress(address: string | undefined): boolean {
  const plain = plainAddress(address ?? '')
  return plain === '::1' || (isIPv4(plain) && plain.startsWith('127.'))
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

/** Whether an address belongs to one of the proxies that are trusted. */
export type TrustedProxies = (address: string | undefined) => boolean

/**
 * Trust in these addresses and networks (`10.0.0.7`, `fd00::/8`), or in every connection without an address: `unix`. Throws
 * `config` for anything else.
 */
export function createTrust(entries: readonly string[]): TrustedProxies {
  const list = new BlockList()
  const isUnixTrusted = entries.includes(UNIX_PEER)
  for (const entry of entries.filter((one) => one !== UNIX_PEER)) addEntry(list, entry)
  return (address) => {
    if (address === undefined) return isUnixTrusted
    const plain = plainAddress(address)
    const version = isIP(plain)
    return version !== 0 && list.check(plain, version === 4 ? 'ipv4' : 'ipv6')
  }
}

function addEntry(list: BlockList, entry: string): void {
  const [, address = '', length] = /^([^/]*)(?:\/(\d{1,3}))?$/.exec(entry.trim()) ?? []
  const family = isIPv4(address) ? 'ipv4' : 'ipv6'
  const bits = family === 'ipv4' ? 32 : 128
  const prefix = length === undefined ? bits : Number(length)
  if (isIP(address) === 0 || address.includes('%') || prefix > bits) {
    const message = `server.trustProxy: ${JSON.stringify(entry)} is not an address or a network such as 10.0.0.0/8`
    throw new MirrorError('config', message)
  }
  list.addSubnet(address, prefix, family)
}
