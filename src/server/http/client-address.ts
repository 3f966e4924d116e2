import { BlockList, isIP, isIPv4 } from 'node:net'
import { UNIX_PEER } from '../../base/connections/limit.ts'
import { plainAddress } from '../../base/connections/network.ts'
import { MirrorError } from '../../base/errors.ts'

/** Whether an address is this machine talking to itself. */
export function isLoopbackAddress(address: string | undefined): boolean {
  const plain = plainAddress(address ?? '')
  return plain === '::1' || (isIPv4(plain) && plain.startsWith('127.'))
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
