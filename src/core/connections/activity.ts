import type { EventEmitter } from 'node:events'
import type { Socket } from 'node:net'
import { sentBytes } from './sent.ts'

/** What is known of a connection's activity. */
export interface Active {
  readonly socket: Pick<Socket, 'bytesRead' | 'bytesWritten' | 'writableLength'>
  /** Bytes that had come, and that the system had taken, when that was looked at last. */
  received: number
  sent: number
  /** When anything was found to have changed last, and when more had been sent, as `performance.now()`. */
  movedAt: number
  sentAt: number
}

/** Interval at which activity is checked while more than half of the connections are in use, milliseconds. */
const CHECK_MS = 1_000

/** Returns the activity of a connection that is new. */
export function newActivity(): Omit<Active, 'socket'> {
  const now = performance.now()
  return { received: 0, sent: 0, movedAt: now, sentAt: now }
}

/** Looks whether a connection has sent or received anything since the last call. */
export function updateActivity(connection: Active): void {
  const { socket } = connection
  const sent = sentBytes(socket)
  const now = performance.now()
  if (sent !== connection.sent) connection.sentAt = now
  if (sent !== connection.sent || socket.bytesRead !== connection.received) connection.movedAt = now
  connection.received = socket.bytesRead
  connection.sent = sent
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
