import type { ServerResponse, IncomingMessage } from 'node:http'

/** A client that takes nothing of an answer for this long is cut off, milliseconds; it may come back with a range. */
const STALLED_MS = 120_000

/** Resolves when the response takes more, or is gone; ends one that takes nothing for two minutes. */
export function writable(response: ServerResponse): Promise<void> {
  return new Promise((resolve) => {
    const go = (): void => {
      clearTimeout(stalled)
      response.off('drain', go).off('close', go)
      resolve()
    }
    const stalled = setTimeout(() => response.destroy(), STALLED_MS)
    if (response.destroyed) go()
    else response.on('drain', go).on('close', go)
  })
}

/** Why a request's body was not taken. */
export type BodyFault = 'too_large' | 'late' | 'encoded' | 'gone'

/** What a body may be. */
interface BodyBounds {
  readonly bytes: number
  readonly timeoutMs: number
  /** Called with the number of bytes that arrived; false: there is no room for them, and the body counts as too large. */
  readonly reserve?: (bytes: number) => boolean
}

/** Reads a request's whole body, no further than its bounds; otherwise returns the reason why there is none. */
export function readRequestBody(
  request: IncomingMessage,
  { bytes, timeoutMs, reserve }: BodyBounds,
): Promise<Buffer | BodyFault> {
  const coding = request.headers['content-encoding']
  if (coding !== undefined && coding.toLowerCase() !== 'identity') return Promise.resolve('encoded')
  if (Number(request.headers['content-length'] ?? 0) > bytes) return Promise.resolve('too_large')
  return new Promise((resolve) => {
    const chunks: Buffer[] = []
    let received = 0
    const end = (outcome: Buffer | BodyFault): void => {
      clearTimeout(timer)
      request.off('data', take).off('end', whole).off('error', gone).off('close', gone)
      request.on('error', () => undefined)
      resolve(outcome)
    }
    const take = (chunk: Buffer): void => {
      received += chunk.length
      if (received > bytes || reserve?.(chunk.length) === false) end('too_large')
      else chunks.push(chunk)
    }
    const whole = (): void => end(Buffer.concat(chunks))
    const gone = (): void => end('gone')
    const timer = setTimeout(() => end('late'), timeoutMs)
    request.on('data', take).once('end', whole).once('error', gone).once('close', gone)
  })
}
