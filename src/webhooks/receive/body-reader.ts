import type { IncomingMessage } from 'node:http'
import type { Share } from '../../base/connections/account.ts'
import { watchBody } from '../../base/connections/body-time.ts'

/** What became of reading a body. */
export type BodyResult =
  { readonly body: Buffer } | { readonly failed: 'too_large' | 'too_many_pieces' | 'too_slow' | 'crowded' | 'gone' }

/** Limits on bodies, one by one and all together. */
interface BodyLimits {
  readonly maxBytes: number
  /** Returns the time in which more than so many bytes must have come, milliseconds. */
  readonly timeOf: (received: number) => number
  /** Bytes that may be in memory at once, of all deliveries. */
  readonly maxTotal: number
}

/** Reads bodies. No sender can shut out another: when memory is spent, what has taken longest makes room. */
export interface Bodies {
  /** `share`: what its bytes count in, beside the memory of all deliveries. */
  read(request: IncomingMessage, share: Share): Promise<BodyResult>
  /** Counts bytes that stay in memory until `done` is called: a body that waits to be stored. */
  reserve(bytes: number): () => void
}

/** The largest delivery accepted, bytes: events are about a kilobyte, and a forged one is read before its signature is judged. */
export const MAX_DELIVERY_BYTES = 256 * 1024

/** Pieces that may be in memory at once, of all deliveries: each takes nearly a kilobyte, even for a chunk of one byte. */
const MAX_PIECES = 16_384
/** Pieces that any body may have; with more of them they must have `FULL_BYTES` each, on average. */
const FREE_PIECES = 2048
const FULL_BYTES = 64

interface Reading {
  readonly give: (outcome: BodyResult) => void
}

/** Readers share one budget. */
export function createBodies(limits: BodyLimits): Bodies {
  const readings = new Set<Reading>() // in the order in which they began
  let total = 0
  let pieces = 0
  const isCrowded = (): boolean => total > limits.maxTotal || pieces > MAX_PIECES
  /** Frees space by refusing the delivery that has been sending longest; a fast sender never is that one. */
  const makeRoom = (): void => {
    for (const reading of readings) {
      if (!isCrowded()) return
      reading.give({ failed: 'crowded' })
    }
  }
  return {
    read: (request, share) =>
      new Promise((resolve) => {
        const chunks: Buffer[] = []
        let size = 0
        const give = (outcome: BodyResult): void => {
          stopWatch()
          share.works()
          request.off('data', onData).off('end', onEnd).off('close', onClose).off('error', onClose)
          readings.delete(reading)
          total -= size
          pieces -= chunks.length
          if (!('body' in outcome))
            discardRequest(request, outcome.failed === 'too_many_pieces' ? CRUMBS_MS : LINGER_MS)
          resolve(outcome)
        }
        const reading = { give }
        const onData = (chunk: Buffer): void => {
          size += chunk.length
          total += chunk.length
          pieces++
          const own = chunks.push(chunk)
          if (size > limits.maxBytes) give({ failed: 'too_large' })
          else if (own > FREE_PIECES && size < own * FULL_BYTES) give({ failed: 'too_many_pieces' })
          else if (!share.take(chunk.length)) give({ failed: 'crowded' })
          else if (isCrowded()) makeRoom()
        }
        const onEnd = (): void => give({ body: Buffer.concat(chunks) })
        const onClose = (): void => give({ failed: 'gone' })
        const received = (): number => size
        const ends = { late: () => give({ failed: 'too_slow' }), cut: onClose }
        const stopWatch = watchBody(request, received, ends, limits.timeOf)
        share.waits(received, () => give({ failed: 'crowded' }))
        readings.add(reading)
        request.on('data', onData).on('end', onEnd).on('close', onClose).on('error', onClose)
      }),
    reserve(bytes) {
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
