import dgram from 'node:dgram'
import dns from 'node:dns'
import { syncBuiltinESMExports } from 'node:module'
import net from 'node:net'
import { MirrorError } from './errors.ts'

/** How a socket connects; taken before `goOffline` forbids it. */
const connectAlways: unknown = Reflect.get(net.Socket.prototype, 'connect')

/** Connects to a socket of this machine by its path, also offline: whether another daemon answers there is not asked of the network. */
export function connectLocally(path: string): net.Socket {
  const socket = new net.Socket()
  if (typeof connectAlways === 'function') Reflect.apply(connectAlways, socket, [path])
  return socket
}

type Patch = { target: object; name: string; before: PropertyDescriptor }

/**
 * Makes every attempt of this thread to connect or to look up a name throw: TCP and local sockets (also TLS, HTTP and
 * `fetch`), DNS, UDP. Listening and incoming connections still work. Each thread needs its own call. Returns a function
 * that undoes it.
 */
export function goOffline(): () => void {
  const patches = [
    ...refuse(net.Socket.prototype, (name) => name === 'connect'),
    ...refuse(dgram.Socket.prototype, (name) => name === 'send' || name === 'connect'),
    ...[dns, dns.promises, dns.Resolver.prototype, dns.promises.Resolver.prototype].flatMap((one) =>
      refuse(one, (name) => LOOKUP.test(name)),
    ),
    ...refuse(globalThis, (name) => name === 'fetch'),
  ]
  syncBuiltinESMExports()
  return () => {
    for (const { target, name, before } of patches) Object.defineProperty(target, name, before)
    syncBuiltinESMExports()
  }
}

const LOOKUP = /^(lookup|resolve|reverse)/

function refuse(target: object, wanted: (name: string) => boolean): Patch[] {
  const owner = Object.getOwnPropertyDescriptors(target)
  return Object.entries(owner).flatMap(([name, before]: [string, PropertyDescriptor]) => {
    if (!wanted(name) || before.configurable !== true) return []
    const value = name === 'lookup' ? lookupHere(before.value) : refusal(name)
    Object.defineProperty(target, name, { ...before, value })
    return [{ target, name, before }]
  })
}

/** Allows lookups of IP addresses and `localhost`, which need no network: listening servers make them too. */
function lookupHere(original: unknown): (...given: unknown[]) => unknown {
  return function (this: unknown, ...given) {
    const [host] = given
    const here = typeof host === 'string' && (host === 'localhost' || net.isIP(host) !== 0)
    return here && typeof original === 'function'
      ? (Reflect.apply(original, this, given) as unknown)
      : refusal(`lookup of ${String(host)}`)()
  }
}

function refusal(name: string): () => never {
  return () => {
    throw new MirrorError('internal', `offline: something tried to reach the network (${name})`)
  }
}
