import type { IncomingMessage } from 'node:http'

/** Why a request's body was not taken. */
export type BodyFault = 'too_large' | 'late' | 'encoded' | 'gone'

/** What a body may be. */
export interface BodyBounds {
  readonly bytes: number
  readonly timeoutMs: number
}

/** A request's whole body, or why there is none. It is read as it comes, no further than its bounds. */
export function readRequestBody(
  request: IncomingMessage,
  { bytes, timeoutMs }: BodyBounds,
): Promise<Buffer | BodyFault> {
  const coding = request.headers['content-encoding']
  if (coding !== undefined && coding.toLowerCase() !== 'identity') return Promise.resolve('encoded')
  if (Number(request.headers['content-length'] ?? 0) > bytes) return Promise.resolve('too_large')
  return new Promise((resolve) => {
    const chunks: Buffer[] = []
    let held = 0
    const end = (outcome: Buffer | BodyFault): void => {
      clearTimeout(timer)
      request.off('data', take).off('end', whole).off('error', gone).off('close', gone)
      request.on('error', () => undefined)
      resolve(outcome)
    }
    const take = (chunk: Buffer): void => {
      held += chunk.length
      if (held > bytes) end('too_large')
      else chunks.push(chunk)
    }
    const whole = (): void => end(Buffer.concat(chunks))
    const gone = (): void => end('gone')
    const timer = setTimeout(() => end('late'), timeoutMs)
    request.on('data', take).once('end', whole).once('error', gone).once('close', gone)
  })
}
