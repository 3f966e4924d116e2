import type { Server } from 'node:http'
import { type AddressInfo, isIPv6 } from 'node:net'
import type { Config } from '../config/schema.ts'
import { MirrorError, messageOf, systemCode } from '../core/errors.ts'

/** Where the server can be reached. */
export interface ServerAddress {
  url: string
  port: number
}

/** Of the pages' framework, what opens the address and what asks the pages themselves. */
interface Listenable {
  readonly server: Server
  listen(at: { host: string; port: number; backlog: number }): Promise<unknown>
  inject(path: string): Promise<{ readonly statusCode: number }>
}

const BACKLOG = 1024

/** Opens the address of the settings, and reports what is known of it. */
export function createListening(app: Listenable, { host, port }: Config['server']) {
  const address = (): ServerAddress | null => addressOf(app.server.address(), host)
  return {
    /** Throws `config` when the address cannot be used. */
    async listen(): Promise<ServerAddress> {
      await app.listen({ host, port, backlog: BACKLOG }).catch((error: unknown) => {
        throw nameListenError(error, host, port)
      })
      return address() ?? { url: '', port }
    },
    /** Null while not listening. */
    address,
    /** True when the serving thread listens and answers its health page. */
    answers: async () => app.server.listening && (await app.inject('/-/health')).statusCode === 200,
  }
}

const ANY_ADDRESS: ReadonlySet<string> = new Set(['0.0.0.0', '::'])

/** Returns the address to show; a wildcard address is shown as localhost. */
function addressOf(bound: AddressInfo | string | null, host: string): ServerAddress | null {
  if (bound === null || typeof bound === 'string') return null
  const shown = ANY_ADDRESS.has(host) ? 'localhost' : isIPv6(host) ? `[${host}]` : host
  return { url: `http://${shown}:${bound.port}`, port: bound.port }
}

/** Returns the address that a server is bound to, as Node reports it; null while it is not bound. */
export function boundAddress(bound: AddressInfo | string | null): string | null {
  return bound === null || typeof bound === 'string' ? null : bound.address
}

const FAULTS: Readonly<Partial<Record<string, string>>> = {
  EADDRINUSE: 'is in use by another program: set server.port to another one, or 0 for any',
  EACCES: 'may not be used by this user: ports below 1024 are reserved, set server.port',
  EADDRNOTAVAIL: 'is not an address of this machine: set server.host',
  ENOTFOUND: 'is not a name that resolves: set server.host',
}

/** A `config` error for an address that cannot be used; anything else unchanged. */
function nameListenError(error: unknown, host: string, port: number): unknown {
  const fault = FAULTS[systemCode(error) ?? '']
  if (fault === undefined) return error
  const message = `${host} port ${port} ${fault} (${messageOf(error)})`
  return new MirrorError('config', message, { cause: error })
}
