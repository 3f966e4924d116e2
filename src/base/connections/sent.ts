import type { Socket } from 'node:net'

/** What Node keeps below a socket: bytes that were passed to libuv, and those of them that the system has not taken. */
interface Handle {
  readonly bytesWritten?: number
  readonly writeQueueSize?: number
}

/**
 * Returns the bytes that the system has taken from a socket. Node's own numbers move only when a whole write is done, and
 * count what waits as written; its handle has what it uses for its own timeouts.
 */
export function sentBytes(socket: Pick<Socket, 'bytesWritten' | 'writableLength'>): number {
  const { _handle: handle } = socket as { _handle?: Handle | null }
  if (typeof handle?.bytesWritten !== 'number') return socket.bytesWritten - socket.writableLength
  return handle.bytesWritten - (handle.writeQueueSize ?? 0)
}
