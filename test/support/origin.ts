import { type IncomingMessage, type RequestListener, type Server, type ServerResponse, createServer } from 'node:http'
import { createServer as createTlsServer } from 'node:https'
import type { AddressInfo } from 'node:net'
import { onTestFinished } from 'vitest'

/** A server of a test's own, for answers that the sandbox would never give; gone when the test ends. */
export interface Origin {
  url: string
  port: number
  /** Every request that came, oldest first. */
  requests: IncomingMessage[]
}

export type Answer = (request: IncomingMessage, response: ServerResponse) => void

/** Starts an origin on a free port of 127.0.0.1; with `tls`, one that speaks https as `localhost`. */
export async function createOrigin(answer: Answer, tls: { key: string; cert: string } | null = null): Promise<Origin> {
  const requests: IncomingMessage[] = []
  const listener: RequestListener = (request, response) => {
    requests.push(request)
    answer(request, response)
  }
  const server = tls === null ? createServer(listener) : createTlsServer(tls, listener)
  const port = await listen(server)
  onTestFinished(() => stop(server))
  const url = tls === null ? `http://127.0.0.1:${port}` : `https://localhost:${port}`
  return { url, port, requests }
}

/** Listens on a free port of 127.0.0.1 and gives that port. */
export async function listen(server: Server): Promise<number> {
  await new Promise<void>((resolve) => server.listen(0, '127.0.0.1', () => resolve()))
  return (server.address() as AddressInfo).port
}

/** Closes a server and every connection it has. */
export function stop(server: Server): Promise<void> {
  return new Promise((resolve) => {
    server.close(() => resolve())
    server.closeAllConnections()
  })
}
