import type { ServerResponse } from 'node:http'

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
