import type { IncomingMessage } from 'node:http'
import type { Socket } from 'node:net'
import { type Active, updateActivity } from './activity.ts'
import { isSlow } from './progress.ts'

/** What decides whether a connection may be closed to make room. */
export interface Spare extends Active {
  /** What answers are written to: the socket, or the one above it in TLS. */
  readonly writable: Pick<Socket, 'writableLength'>
  /** Requests that the HTTP server has parsed, and those of them without a complete response. */
  readonly requests: number
  readonly active: number
  /** The request that was parsed last; null: none was. */
  readonly last: Pick<IncomingMessage, 'complete'> | null
  /** When that came, or the connection, and the bytes that had come by the end of the answer before. */
  readonly beganAt: number
  readonly bytesBefore: number
}

/** Why a connection may be closed; the label of the metric. */
export type SpareFor = 'silent' | 'unread' | 'idle'

/** A client that takes nothing of its answer for this long is waited for no longer when others need its place, milliseconds. */
const UNREAD_MS = 10_000

/**
 * Returns the connections that may be closed, in order. First those that wait for their client: without a complete request, or
 * with a body that has not come, the slowest first. Then those whose client takes nothing of its answer; then idle ones.
 */
export function findSpare<One extends Spare>(among: Iterable<One>): [SpareFor, One[]] {
  const all = [...among]
  const silent = all.filter(isUnsaid)
  if (silent.length > 0) return ['silent', sortBy(silent, bytesPerSecond)]
  all.forEach(updateActivity)
  const now = performance.now()
  const unread = all.filter((one) => isSending(one) && hasStopped(one, now))
  if (unread.length > 0) return ['unread', sortBy(unread, ({ answers }) => answers.movedAt)]
  const idle = all.filter(({ active }) => active === 0)
  return ['idle', sortBy(idle, ({ movedAt }) => movedAt)]
}

/** Reports whether the client has still to say what it wants: no request is complete, or the body of the last one is not. */
function isUnsaid({ requests, active, last, socket }: Spare): boolean {
  // Records are served on the fast path, whose requests the HTTP server does not see.
  if (requests === 0) return socket.bytesWritten === 0
  // Of several requests at once, those before the last are being answered.
  return last?.complete === false && active <= 1
}

function isSending({ writable }: Spare): boolean {
  return writable.writableLength > 0
}

/** The system takes bytes in steps: one that took a step lately is waited for until the next one is due. */
function hasStopped({ answers }: Spare, now: number): boolean {
  return now - answers.movedAt >= UNREAD_MS && isSlow(answers, now)
}

/** Returns how fast a request comes; of those of which nothing comes, the oldest is first. */
function bytesPerSecond({ socket, bytesBefore, beganAt }: Spare): number {
  const seconds = (performance.now() - beganAt) / 1000
  return (socket.bytesRead - bytesBefore) / (seconds + 1)
}

function sortBy<One>(all: readonly One[], keyOf: (one: One) => number): One[] {
  const keyed = all.map((one) => ({ one, key: keyOf(one) }))
  return keyed.sort((one, other) => one.key - other.key).map(({ one }) => one)
}
