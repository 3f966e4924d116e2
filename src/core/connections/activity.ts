import type { EventEmitter } from 'node:events'
import type { Socket } from 'node:net'

/** What is known of a connection's activity. */
export interface Active {
  readonly socket: Pick<Socket, 'bytesRead' | 'bytesWritten'>
  /** Bytes that it had sent and received when that was looked at last. */
  bytes: number
  /** When that was found to have changed last, as `performance.now()`. */
  movedAt: number
}

/** Interval at which activity is checked while more than half of the connections are in use, milliseconds. */
const CHECK_MS = 1_000

/** Looks whether a connection has sent or received anything since the last call. */
export function updateActivity(connection: Active): void {
  const { socket } = connection
  const bytes = socket.bytesRead + socket.bytesWritten
  if (bytes !== connection.bytes) connection.movedAt = performance.now()
  connection.bytes = bytes
}

/**
 * Returns a function to call after each new connection. It notes what moves while more than half of the connections are in
 * use: a timer that runs all the time would wake an idle process each second. `limits` may change meanwhile: the first
 * connection after that counts.
 */
export function createActivityWatch(
  server: EventEmitter,
  open: ReadonlyMap<unknown, Active>,
  limits: { readonly most: number },
): () => void {
  let timer: NodeJS.Timeout | null = null
  const stop = (): void => {
    if (timer !== null) clearInterval(timer)
    timer = null
  }
  const check = (): void => {
    if (open.size <= limits.most / 2) return stop()
    for (const one of open.values()) updateActivity(one)
  }
  server.once('close', stop)
  return () => {
    if (timer === null && open.size > limits.most / 2) timer = setInterval(check, CHECK_MS).unref()
  }
}
