import type { IncomingMessage } from 'node:http'
import process from 'node:process'
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

/** What is called, once at most, when a body does not come. */
interface BodyEnds {
  /** It takes longer than its size allows. */
  readonly late: () => void
  /** Its client has closed its side in the middle of it. */
  readonly cut: () => void
}

/** Watches a body that comes; `received` returns its bytes so far. Returns what ends the watch. */
export function watchBody(
  request: IncomingMessage,
  received: () => number,
  { late, cut }: BodyEnds,
  timeOf: (received: number) => number = bodyTimeMs,
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
