import { isIP } from 'node:net'
import { isPrivateAddress } from '../../../upstream/http/destinations.ts'

/** Whether a registry's host (with or without a port) is this machine itself: it may be without TLS, as other tools have it. */
export function isLoopbackName(host: string): boolean {
  const { hostname } = new URL(`http://${host}`)
  return hostname === 'localhost' || hostname === '[::1]' || /^127\.\d+\.\d+\.\d+$/.test(hostname)
}

/** Whether the host name of a URL is a private address as it stands; a name may resolve to one all the same. */
export function isPrivateHost(hostname: string): boolean {
  const plain = hostname.replace(/^\[|\]$/g, '')
  return hostname === 'localhost' || (isIP(plain) !== 0 && isPrivateAddress(plain))
}
