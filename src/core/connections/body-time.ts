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

/**
 * Calls `late` once a body takes longer than its size allows; `received` returns its bytes so far. Returns what ends
 * the watch.
 */
export function watchBody(
  received: () => number,
  late: () => void,
  timeOf: (received: number) => number = bodyTimeMs,
): () => void {
  const began = performance.now()
  const look = (): void => {
    const left = timeOf(received()) - (performance.now() - began)
    if (left <= 0) late()
    else timer = setTimeout(look, Math.ceil(left))
  }
  let timer = setTimeout(look, timeOf(received()))
  return () => clearTimeout(timer)
}
