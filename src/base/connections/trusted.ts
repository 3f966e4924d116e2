import { BlockList, isIP, isIPv6 } from 'node:net'

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
