import type { ServerResponse } from 'node:http'
import type { NegotiatedAnswer } from './http/negotiate.ts'
import type { LoggedRequest } from './request-log.ts'

/** Where an answer goes: the response, whether it has no body (HEAD), and the log line to fill in. */
export interface Outlet {
  response: ServerResponse
  head: boolean
  logged: LoggedRequest
}

/** Sends an answer in one write when it is one piece, else chunk by chunk with back-pressure. */
export async function deliver(outlet: Outlet, answer: NegotiatedAnswer): Promise<void> {
  sendHead(outlet, answer)
  if (outlet.head) {
    outlet.response.end()
    return
  }
  const pieces: readonly Buffer[] = [...answer.body()]
  if (pieces.length <= 1) {
    const [piece] = pieces
    outlet.logged.bytes += piece?.length ?? 0
    outlet.response.end(piece)
    return
  }
  for (const piece of pieces) await write(outlet, piece)
  outlet.response.end()
}

/** Status line and headers, with a true Content-Length unless the answer sets its own. */
export function sendHead({ response, logged }: Outlet, answer: NegotiatedAnswer): void {
  logged.status = answer.status
  const { headers, status } = answer
  const bare = status === 304 || status === 204 || 'Transfer-Encoding' in headers
  const length = bare ? {} : { 'Content-Length': answer.length }
  response.writeHead(status, { ...length, ...headers })
}

/** Writes one piece and waits until the next can be written, or the client is gone. */
export async function write({ response, logged }: Outlet, piece: Buffer): Promise<void> {
  if (response.destroyed) return
  logged.bytes += piece.length
  if (response.write(piece)) return
  await new Promise<void>((resolve) => {
    const done = (): void => {
      response.off('drain', done)
      response.off('close', done)
      resolve()
    }
    response.on('drain', done)
    response.on('close', done)
  })
}
