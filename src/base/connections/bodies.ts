import type { IncomingMessage } from 'node:http'
import process from 'node:process'
import type { Share } from './account.ts'
import { SLOW_BYTES } from './progress.ts'

/** Time in which a body begins to come, and in which a small one has come, milliseconds. */
const BODY_MS = 10_000

/**
 * Returns the time, from the head of a request on, in which more of its body must have come than these bytes, milliseconds: a
 * body may take long that is long and keeps coming.
 */
export function bodyTimeMs(received: number): number {
  return BODY_MS + (received * 1000) / SLOW_BYTES
}

/** Why any body is not read to its end. `crowded`: the bodies and answers of all clients have used up their memory. */
export type BodyFault = 'late' | 'gone' | 'crowded'

/** What a body may be, and what it counts in. */
interface BodyRules<Refusal> {
  /** What the bytes count in. */
  readonly share: Share
  /** Returns the time in which more than these bytes must have come, milliseconds. */
  readonly timeOf?: (received: number) => number
  /** Judges a body by the bytes and the pieces that have come, before the last piece is taken; null: it may go on. */
  readonly judge: (received: number, pieces: number) => Refusal | null
  /** Called after each piece that was taken. */
  readonly onTaken?: () => void
}

/** A body that comes in. */
export interface ComingBody<Refusal> {
  /** Reads no more of it. */
  end(why: Refusal | BodyFault): void
}

/** Reads the body of a request, and calls `done` once with the whole of it, or with the reason why there is none. */
export function readBody<Refusal extends string>(
  request: IncomingMessage,
  { share, timeOf = bodyTimeMs, judge, onTaken }: BodyRules<Refusal>,
  done: (outcome: Buffer | Refusal | BodyFault) => void,
): ComingBody<Refusal> {
  const chunks: Buffer[] = []
  let received = 0
  const end = (outcome: Buffer | Refusal | BodyFault): void => {
    stopWatch()
    request.off('data', take).off('end', whole).off('error', gone).off('close', gone)
    request.on('error', () => undefined)
    chunks.length = 0 // while its client holds the connection, its bytes are free
    share.works()
    done(outcome)
  }
  const take = (chunk: Buffer): void => {
    received += chunk.length
    chunks.push(chunk)
    const refusal = judge(received, chunks.length)
    if (refusal !== null) end(refusal)
    else if (!share.take(chunk.length)) end('crowded')
    else onTaken?.()
  }
  const whole = (): void => end(Buffer.concat(chunks))
  const gone = (): void => end('gone')
  const count = (): number => received
  const stopWatch = watchBody(request, count, { late: () => end('late'), cut: gone }, timeOf)
  share.waits(count, () => end('crowded'))
  request.on('data', take).on('end', whole).on('error', gone).on('close', gone)
  return { end }
}

/** Why a request's body was not taken. */
export type RequestFault = BodyFault | 'too_large' | 'encoded'

/** What a body may be. */
interface BodyBounds {
  readonly bytes: number
  /** What the bytes count in until the response is closed. */
  readonly share: Share
  /** Returns the time in which more than these bytes must have come, milliseconds. */
  readonly timeOf?: (received: number) => number
}

/** Reads a request's whole body, no further than its bounds; otherwise returns the reason why there is none. */
export function readRequestBody(
  request: IncomingMessage,
  { bytes, ...rules }: BodyBounds,
): Promise<Buffer | RequestFault> {
  const coding = request.headers['content-encoding']
  if (coding !== undefined && coding.toLowerCase() !== 'identity') return Promise.resolve('encoded')
  if (Number(request.headers['content-length'] ?? 0) > bytes) return Promise.resolve('too_large')
  return new Promise((resolve) => {
    const judge = (received: number): 'too_large' | null => (received > bytes ? 'too_large' : null)
    readBody(request, { ...rules, judge }, resolve)
  })
}

/** What is called, once at most, when a body does not come. */
interface BodyEnds {
  /** It takes longer than its size allows. */
  readonly late: () => void
  /** Its client has closed its side in the middle of it. */
  readonly cut: () => void
}

/** Watches a body that comes; `received` returns its bytes so far. Returns what ends the watch. */
function watchBody(
  request: IncomingMessage,
  received: () => number,
  { late, cut }: BodyEnds,
  timeOf: (received: number) => number,
): () => void {
  const stopWaiting = watchTime(received, late, timeOf)
  const { socket } = request
  // A server that answers clients that closed their side would wait for the rest.
  const onEnd = (): void => {
    if (!request.complete) cut()
  }
  if (socket.readableEnded) process.nextTick(onEnd)
  else socket.once('end', onEnd)
  return () => {
    stopWaiting()
    socket.off('end', onEnd)
  }
}

function watchTime(received: () => number, late: () => void, timeOf: (received: number) => number): () => void {
  const began = performance.now()
  const look = (): void => {
    const left = timeOf(received()) - (performance.now() - began)
    if (left <= 0) late()
    else timer = setTimeout(look, Math.ceil(left))
  }
  let timer = setTimeout(look, timeOf(received()))
  return () => clearTimeout(timer)
}
