import { type Steps, createFairQueue } from '../../base/pacing.ts'

/** How many small things are done between two yields. */
export const STEP = 256

/** How long the work has the serving thread at a time, milliseconds. */
const STRETCH_MS = 8

const queue = createFairQueue()

/** Does the work in stretches, one of all such work in a round of the event loop; addresses take turns. '': for all clients. */
export async function inSteps<T>(steps: Steps<T>, address = ''): Promise<T> {
  for (;;) {
    await queue.next(address)
    const end = performance.now() + STRETCH_MS
    do {
      const step = steps.next()
      if (step.done === true) return step.value
    } while (performance.now() < end)
  }
}

/** A part of an answer: bytes of another text, or a sign between them. */
export type Piece = Buffer | string

/** Bytes that are copied between two pauses. */
const COPIED = 1024 * 1024

/** The pieces in one buffer; yields after every few pieces and every mebibyte. */
export function* joinInSteps(pieces: readonly Piece[]): Steps<Buffer> {
  let size = 0
  for (const [place, piece] of pieces.entries()) {
    size += typeof piece === 'string' ? Buffer.byteLength(piece) : piece.length
    if (place % STEP === 0) yield
  }
  const whole = Buffer.allocUnsafe(size)
  let at = 0
  let pause = COPIED
  for (const [place, piece] of pieces.entries()) {
    if (typeof piece === 'string') at += whole.write(piece, at)
    else
      for (let from = 0; from < piece.length; from += COPIED) {
        at += piece.copy(whole, at, from, Math.min(from + COPIED, piece.length))
        if (at < pause) continue
        pause = at + COPIED
        yield
      }
    if (place % STEP === 0) yield
  }
  return whole
}
