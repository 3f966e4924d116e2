import { type IncomingMessage, type Server, type ServerResponse, createServer } from 'node:http'
import type { AddressInfo } from 'node:net'

/** Answers a request; what it rejects with ends the connection. */
type Handler = (request: IncomingMessage, response: ServerResponse) => Promise<void>

/** The addresses that a sandbox listens at. */
export interface Listeners {
  /** Rejects when the port is not available; 0 for a free one. */
  open(port: number, handler: Handler): Promise<{ url: string; port: number }>
  /** Ends all of them, open connections too. */
  close(): Promise<void>
}

/** No addresses yet, all of one host. */
export function createListeners(host: string): Listeners {
  const servers: Server[] = []
  return {
    async open(wanted, handler) {
      const server = createServer({ keepAliveTimeout: 65_000 }, (request, response) => {
        handler(request, response).catch((error: unknown) => {
          response.destroy(error instanceof Error ? error : new Error(String(error)))
        })
      })
      const port = await listen(server, host, wanted)
      servers.push(server)
      const shown = host.includes(':') ? `[${host}]` : host
      return { url: `http://${shown}:${port}`, port }
    },
    async close() {
      await Promise.all(servers.splice(0).map(closeServer))
    },
  }
}

function closeServer(server: Server): Promise<void> {
  return new Promise((resolve) => {
    server.close(() => resolve())
    server.closeAllConnections()
  })
}

async function listen(server: Server, host: string, port: number): Promise<number> {
  await new Promise<void>((resolve, reject) => {
    server.once('error', reject)
    server.listen(port, host, () => resolve())
  })
  return (server.address() as AddressInfo).port // a TCP server that listens has such an address
}
