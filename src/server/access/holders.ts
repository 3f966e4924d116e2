import type { IncomingMessage } from 'node:http'
import type { Holder } from '../../base/connections/ledger.ts'
import { clientNetwork } from '../../base/connections/network.ts'
import type { TrustedProxies } from '../http/client-address.ts'
import { readForwarding } from '../http/forwarded.ts'
import type { Access } from './access.ts'

/**
 * Creates what names the client of a request for the account of bytes. Address and key are looked at only once, and only when
 * bytes are short.
 */
export function createHolders(
  trusted: TrustedProxies,
  bringsKey: Access['hasKey'],
): (request: IncomingMessage) => Holder {
  return (request) => {
    let address: string | null = null
    let hasKey: boolean | null = null
    return {
      address: () => (address ??= addressOf(request, trusted)),
      hasKey: () => (hasKey ??= isKeyed(request, bringsKey)),
    }
  }
}

function addressOf({ socket, headersDistinct }: IncomingMessage, trusted: TrustedProxies): string {
  return clientNetwork(readForwarding(socket.remoteAddress, headersDistinct, trusted).client)
}

function isKeyed(request: IncomingMessage, bringsKey: Access['hasKey']): boolean {
  if (request.headers.authorization === undefined) return false
  try {
    return bringsKey(request)
  } catch {
    return false // a store that cannot be read is reported by the requests that need a key
  }
}
