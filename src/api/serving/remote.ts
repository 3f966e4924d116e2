import type { Socket } from 'node:net'
import type { LimitedConnection } from '../../core/connections/limit.ts'
import type { OpenedConnection, ToServing } from './messages.ts'

/** A connection that another serving thread has, as the limits of connections see it. */
export interface RemoteConnection extends LimitedConnection {
  /** Takes the socket over which it was handed to this thread; false when it is to be closed. */
  join(socket: Socket): boolean
  /** The other thread closed it. */
  closed(): void
}

/** `activity`: how many answers the other thread gave on each of its connections. */
export function createRemote(
  { id, slot, remoteAddress, remotePort, ...opened }: OpenedConnection,
  activity: Uint32Array,
  post: (message: ToServing) => void,
): RemoteConnection {
  const calls: (() => void)[] = []
  let isOpen = true
  let joined: Socket | null = null
  const answered = (): number => activity[slot] ?? 0
  return {
    remoteAddress,
    remotePort,
    get bytesRead() {
      return answered() + (joined?.bytesRead ?? 0)
    },
    get bytesWritten() {
      return answered() + (joined?.bytesWritten ?? 0)
    },
    // The other thread closes its own connections when what they have to send is sent.
    get writableLength() {
      return joined?.writableLength ?? 1
    },
    once: (_, call) => calls.push(call),
    join(socket) {
      if (!isOpen) return false
      joined = socket
      const { remoteFamily, localAddress, localPort } = opened
      shown(socket, { remoteAddress, remotePort, remoteFamily, localAddress, localPort })
      socket.once('close', () => post({ type: 'end', id }))
      return true
    },
    destroy() {
      isOpen = false
      if (joined === null) post({ type: 'end', id })
      else joined.destroy()
    },
    closed() {
      isOpen = false
      joined?.destroy()
      for (const call of calls) call()
    },
  }
}

/** Has a socket show the addresses of the client's connection: throttles, trusted proxies and logs go by them. */
function shown(socket: Socket, addresses: Readonly<Record<string, unknown>>): void {
  for (const [name, value] of Object.entries(addresses))
    Object.defineProperty(socket, name, { value, enumerable: true })
}
