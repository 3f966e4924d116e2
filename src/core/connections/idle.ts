import type { IncomingMessage, Server, ServerResponse } from 'node:http'
import type { Socket } from 'node:net'

/**
 * Has a server close as idle only connections whose responses the client's system has taken, in `closeIdleConnections`, which
 * `close` calls as well. Node's own takes a response for finished as soon as it was passed on completely, and cuts off what a
 * slow client has still to read.
 */
export function closeOnlySent(server: Server): void {
  /** Connections without a request in progress → bytes that they had read when the last one ended. */
  const idle = new Map<Socket, number>()
  const active = new Map<Socket, number>()
  const onRequest = ({ socket }: IncomingMessage, response: ServerResponse): void => {
    const before = active.get(socket)
    if (before === undefined) {
      socket.once('close', () => {
        active.delete(socket)
        idle.delete(socket)
      })
    }
    idle.delete(socket)
    active.set(socket, (before ?? 0) + 1)
    response.once('close', () => {
      const left = (active.get(socket) ?? 0) - 1
      if (left < 0) return // the connection was closed before
      active.set(socket, left)
      if (left === 0) idle.set(socket, socket.bytesRead)
    })
  }
  server.prependListener('request', onRequest).prependListener('checkExpectation', onRequest)
  server.closeIdleConnections = () => {
    for (const [socket, read] of idle)
      if (socket.bytesRead === read && socket.writableLength === 0) socket.destroy()
  }
}
