import type { ServerResponse } from 'node:http'
import { holderFor } from '../../base/connections/responses.ts'
import type { Asking } from '../../base/threads/request-thread.ts'

/** Returns who asks a thread for an answer: the client that waits for this response. */
export function askingOf(response: ServerResponse): Asking {
  const isGone = (): boolean => response.destroyed || response.writableEnded
  return { isGone, address: holderFor(response).address() }
}
