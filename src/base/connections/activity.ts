import type { EventEmitter } from 'node:events'
import type { Socket } from 'node:net'
import { type ClientProgress, beginProgress, updateProgress } from './progress.ts'
import { sentBytes } from './sent.ts'

/** What is known of a connection's activity. */
export interface Active {
  readonly socket: Sending
  /** Bytes that had come when that was looked at last. */
  received: number
  /** When anything was found to have changed last, as `performance.now()`. */
  movedAt: number
  /** What goes to the client, since the last request came. */
  answers: ClientProgress
}

type Sending = Pick<Socket, 'bytesRead' | 'bytesWritten' | 'writableLength'>

/** Interval at which activity is checked while more than half of the connections are in use, milliseconds. */
const CHECK_MS = 1_000

/** Returns the activity of a connection that is new. */
export function newActivity(socket: Sending): Omit<Active, 'socket'> {
  const answers = followAnswers(socket)
  return { received: 0, movedAt: answers.beganAt, answers }
}

/** Begins to look at what goes to the client of a connection. */
export function followAnswers(socket: Sending): ClientProgress {
  return beginProgress('answer', () => sentBytes(socket))
}

/** Looks whether a connection has sent or received anything since the last call. */
export function updateActivity(connection: Active): void {
  const { socket, answers } = connection
  const now = performance.now()
  const before = answers.seen
  updateProgress(answers, now)
  const hasMoved = answers.seen !== before || socket.bytesRead !== connection.received
  if (hasMoved) connection.movedAt = now
  connection.received = socket.bytesRead
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
