import type { IncomingMessage } from 'node:http'
import type { Share } from '../../base/connections/account.ts'
import { type BodyFault, type ComingBody, readBody } from '../../base/connections/bodies.ts'

/** Why the body of a delivery was not read. */
export type DeliveryFault = BodyFault | 'too_large' | 'too_many_pieces'

/** Limits on bodies, one by one and all together. */
interface BodyLimits {
  readonly maxBytes: number
  /** Returns the time in which more than so many bytes must have come, milliseconds. */
  readonly timeOf: (received: number) => number
  /** Bytes that may be in memory at once, of all deliveries. */
  readonly maxTotal: number
}

/** Reads bodies. No sender can shut out another: when memory is spent, what has taken longest makes room. */
export type Bodies = ReturnType<typeof createBodies>

/** The largest delivery accepted, bytes: events are about a kilobyte, and a forged one is read before its signature is judged. */
export const MAX_DELIVERY_BYTES = 256 * 1024

/** Pieces that may be in memory at once, of all deliveries: each takes nearly a kilobyte, even for a chunk of one byte. */
const MAX_PIECES = 16_384
/** Pieces that any body may have; with more of them they must have `FULL_BYTES` each, on average. */
const FREE_PIECES = 2048
const FULL_BYTES = 64

/** Readers share one budget. */
export function createBodies(limits: BodyLimits) {
  const readings = new Set<ComingBody<DeliveryFault>>() // in the order in which they began
  let total = 0
  let pieces = 0
  const isCrowded = (): boolean => total > limits.maxTotal || pieces > MAX_PIECES
  /** Frees space by refusing the delivery that has been sending longest; a fast sender never is that one. */
  const makeRoom = (): void => {
    for (const reading of readings) {
      if (!isCrowded()) return
      reading.end('crowded')
    }
  }
  return {
    /** `share`: what its bytes count in, beside the memory of all deliveries. */
    read: (request: IncomingMessage, share: Share): Promise<Buffer | DeliveryFault> =>
      new Promise((resolve) => {
        let size = 0
        let own = 0
        const judge = (received: number, count: number): DeliveryFault | null => {
          total += received - size
          pieces += count - own
          size = received
          own = count
          if (size > limits.maxBytes) return 'too_large'
          return own > FREE_PIECES && size < own * FULL_BYTES ? 'too_many_pieces' : null
        }
        const done = (outcome: Buffer | DeliveryFault): void => {
          readings.delete(reading)
          total -= size
          pieces -= own
          if (typeof outcome === 'string')
            discardRequest(request, outcome === 'too_many_pieces' ? CRUMBS_MS : LINGER_MS)
          resolve(outcome)
        }
        const rules = { share, timeOf: limits.timeOf, judge, onTaken: makeRoom }
        const reading = readBody<DeliveryFault>(request, rules, done)
        readings.add(reading)
      }),
    /** Counts bytes that stay in memory until `done` is called: a body that waits to be stored. */
    reserve(bytes: number): () => void {
      total += bytes
      return () => void (total -= bytes)
    },
  }
}

/** What is still sent after the answer is read and dropped for this long, so that the answer is not lost with the connection. */
const LINGER_MS = 3_000
/** The same for a body in too many pieces: reading them is what costs. */
const CRUMBS_MS = 100

/** Lets the rest of a request go by; a connection that does not come to an end is cut off. */
export function discardRequest(request: IncomingMessage, lingerMs = LINGER_MS): void {
  request.on('error', () => undefined)
  if (request.complete || request.destroyed) return
  const cut = setTimeout(() => request.socket.destroy(), lingerMs).unref()
  request.once('end', () => clearTimeout(cut)).once('close', () => clearTimeout(cut))
  request.resume()
}
