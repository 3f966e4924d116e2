import { isIPv4 } from 'node:net'
import { UNIX_PEER } from '../../base/connections/limit.ts'
import { createNetworks, plainAddress } from '../../base/connections/network.ts'

/** Whether an address is this machine talking to itself. */
export function isLoopbackAddress(address: string | undefined): boolean {
  const plain = plainAddress(address ?? '')
  return plain === '::1' || (isIPv4(plain) && plain.startsWith('127.'))
}

/** Whether an address belongs to one of the proxies that are trusted. */
export type TrustedProxies = (address: string | undefined) => boolean

/** Creates the rule of `server.trustProxy`: addresses and networks, or every connection without an address (`unix`). */
export function createTrust(entries: readonly string[]): TrustedProxies {
  const isUnixTrusted = entries.includes(UNIX_PEER)
  const isWithin = createNetworks(entries)
  return (address) => (address === undefined ? isUnixTrusted : isWithin(address))
}
