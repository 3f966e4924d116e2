import type { ServerResponse } from 'node:http'

/** Resolves when the response takes more, or is gone. */
export function writable(response: ServerResponse): Promise<void> {
  return new Promise((resolve) => {
    const go = (): void => {
      response.off('drain', go).off('close', go)
      resolve()
    }
    if (response.destroyed) resolve()
    else response.on('drain', go).on('close', go)
  })
}
