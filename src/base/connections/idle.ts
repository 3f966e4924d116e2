import type { IncomingMessage, Server, ServerResponse } from 'node:http'
import type { Socket } from 'node:net'

/**
 * Has a server close as idle only connections whose responses the client's system has taken, in `closeIdleConnections`, which
 * `close` calls as well. Node takes a response for finished as soon as it was passed on completely, and cuts off what a
 * slow client has still to read. Node alone knows on which connections the next request has begun, so it is asked first.
 */
export function closeOnlySent(server: Server): void {
  /** Responses of a connection that are not sent completely. */
  const unsent = new Map<Socket, number>()
  const onRequest = ({ socket }: IncomingMessage, response: ServerResponse): void => {
    unsent.set(socket, (unsent.get(socket) ?? 0) + 1)
    response.once('close', () => {
      const left = (unsent.get(socket) ?? 0) - 1
      if (left > 0) unsent.set(socket, left)
      else unsent.delete(socket)
    })
  }
  server.prependListener('request', onRequest).prependListener('checkExpectation', onRequest)
  const closeIdle = server.closeIdleConnections.bind(server)
  server.closeIdleConnections = () => {
    const kept = [...unsent.keys()]
    for (const socket of kept) socket.destroy = () => socket // what Node would call now
    try {
      closeIdle()
    } finally {
      for (const socket of kept) Reflect.deleteProperty(socket, 'destroy')
    }
  }
}
