import type { ServerResponse, IncomingMessage } from 'node:http'
import type { Share } from '../../base/connections/account.ts'
import { watchBody } from '../../base/connections/body-time.ts'

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
export type BodyFault = 'too_large' | 'late' | 'encoded' | 'gone' | 'crowded'

/** What a body may be. */
interface BodyBounds {
  readonly bytes: number
  /** What the bytes count in until the response is closed. */
  readonly share: Share
  /** Returns the time in which more than these bytes must have come, milliseconds. */
  readonly timeOf?: (received: number) => number
}

/**
 * Reads a request's whole body, no further than its bounds; otherwise returns the reason why there is none. `crowded`: the bodies
 * and answers of all clients have used up their memory, and this one had to make room.
 */
export function readRequestBody(
  request: IncomingMessage,
  { bytes, share, timeOf }: BodyBounds,
): Promise<Buffer | BodyFault> {
  const coding = request.headers['content-encoding']
  if (coding !== undefined && coding.toLowerCase() !== 'identity') return Promise.resolve('encoded')
  if (Number(request.headers['content-length'] ?? 0) > bytes) return Promise.resolve('too_large')
  return new Promise((resolve) => {
    const chunks: Buffer[] = []
    let received = 0
    const end = (outcome: Buffer | BodyFault): void => {
      stopWatch()
      request.off('data', take).off('end', whole).off('error', gone).off('close', gone)
      request.on('error', () => undefined)
      chunks.length = 0
      share.works()
      resolve(outcome)
    }
    const take = (chunk: Buffer): void => {
      received += chunk.length
      if (received > bytes) end('too_large')
      else if (!share.take(chunk.length)) end('crowded')
      else chunks.push(chunk)
    }
    const whole = (): void => end(Buffer.concat(chunks))
    const gone = (): void => end('gone')
    const count = (): number => received
    const ends = { late: () => end('late'), cut: gone }
    const stopWatch = watchBody(request, count, ends, timeOf)
    share.waits(count, () => end('crowded'))
    request.on('data', take).once('end', whole).once('error', gone).once('close', gone)
  })
}
