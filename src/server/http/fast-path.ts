import type { EventEmitter } from 'node:events'
import type { Socket } from 'node:net'
import type { Account } from '../../base/connections/account.ts'
import { ANSWER_PIECE, countWritten } from '../../base/connections/responses.ts'
import { formatHttpDate } from '../../base/time.ts'
import { type Coding, createHeaderMemory } from './request-headers.ts'

/*
 * The fast path: record requests over keep-alive connections, as scanners fetch a feed. A connection starts here and
 * stays as long as each chunk that it sends is exactly one plain GET of a stored record, and the answer before it was sent.
 * Such a request is answered with one write, without building Node's request and response, which is two thirds of its cost.
 * At the first sign of anything else (another method, path or version, a header that is not on the short list, a condition,
 * a body, half a request, two at once, a missing record) the connection is handed to Node's HTTP server, with the bytes that
 * were read, and stays there. This file therefore need not implement HTTP in general, only recognize the requests that it
 * answers; its answers are byte-for-byte the same.
 */

/** A 200: its head up to what only the connection knows, and its body. */
interface FastPathResponse {
  readonly head: string
  readonly body: Buffer
}

/** Source of the answers, and the idle timeout of a connection. */
export interface FastPathOptions {
  /** The answer for a record's target; undefined, or an error, hands the connection over. */
  readonly find: (target: string, coding: Coding) => FastPathResponse | undefined
  readonly keepAliveSeconds: number
  /** False sends a new connection to the HTTP server, as while each request is logged in detail. */
  readonly isEnabled: () => boolean
  /** Whether a connection may be answered here. */
  readonly takes: (socket: Socket) => boolean
  /** The server's event for a connection that HTTP is spoken on; `secureConnection` with TLS. */
  readonly event: 'connection' | 'secureConnection'
  /** Called after each answer with the seconds since its request, and its connection. */
  readonly onAnswered?: (seconds: number, socket: Socket) => void
  /** What large bodies count in that their clients do not take at once. */
  readonly account: Account
}

/** How long a connection may take to send its first request, milliseconds. */
export const HEADERS_MS = 10_000

/** The fast path of one server. */
export interface FastPath {
  /** Lets its connections finish what they send and closes them; new ones go straight to the HTTP server. */
  close(): void
}

type Listener = (this: EventEmitter, socket: Socket) => void

/** Installs the fast path before a server's own connection handling: the listeners of `options.event`. */
export function openFastPath(server: EventEmitter, options: FastPathOptions): FastPath {
  const slow = server.listeners(options.event) as Listener[]
  const sockets = new Map<Socket, () => void>()
  const atEndOfIteration = createResponseQueue()
  const state = { open: true }
  const handOver = (socket: Socket): void => {
    sockets.delete(socket)
    for (const listener of slow) listener.call(server, socket)
  }
  server.removeAllListeners(options.event)
  server.on(options.event, (socket: Socket) => {
    if (!state.open || !options.isEnabled() || !options.takes(socket)) return handOver(socket)
    sockets.set(socket, drive(socket, options, atEndOfIteration, handOver))
    socket.once('close', () => sockets.delete(socket))
  })
  return {
    close() {
      state.open = false
      for (const [socket, send] of sockets) {
        send()
        socket.destroySoon()
      }
    },
  }
}

/** Answers on one connection until it sends something else than a plain request. Returns what sends a pending answer. */
function drive(
  socket: Socket,
  options: FastPathOptions,
  atEndOfIteration: (send: () => void) => void,
  handOver: (socket: Socket) => void,
): () => void {
  const answerTo = createAnswering(options.find)
  const tail = `Connection: keep-alive\r\nKeep-Alive: timeout=${options.keepAliveSeconds}\r\n\r\n`

  let waiting: FastPathResponse | null = null
  let isFirst = true
  let arrivedAt = 0
  const send = (): void => {
    if (waiting === null) return
    const { head, body } = waiting
    waiting = null
    socket.cork()
    socket.write(`${head}Date: ${dateNow()}\r\n${tail}`, 'latin1')
    socket.write(body)
    socket.uncork()
    if (body.length > ANSWER_PIECE && socket.writableLength > 0) countWritten(options.account, socket, body)
    options.onAnswered?.((performance.now() - arrivedAt) / 1000, socket)
  }
  const onData = (chunk: Buffer): void => {
    send() // this request may have arrived before the last answer was sent
    const answer = socket.writableLength > 0 ? undefined : answerTo(chunk)
    if (answer === undefined) return leave(chunk)
    waiting = answer
    arrivedAt = performance.now()
    if (isFirst) socket.setTimeout(options.keepAliveSeconds * 1000)
    isFirst = false
    atEndOfIteration(send)
  }
  const onEnd = (): void => {
    send()
    socket.end()
  }
  const destroy = (): void => void socket.destroy()

  const leave = (chunk: Buffer): void => {
    if (socket.readableEnded) return destroy() // nothing can be read from it again
    socket.off('data', onData).off('end', onEnd).off('timeout', destroy).off('error', destroy)
    socket.setTimeout(0)
    socket.pause()
    socket.unshift(chunk)
    handOver(socket)
    socket.resume()
  }
  socket.on('data', onData).on('end', onEnd).on('timeout', destroy).on('error', destroy)
  socket.setTimeout(HEADERS_MS)
  return send
}

const VERSION = ' HTTP/1.1'

/** Creates what finds the answer to a chunk of a connection; undefined: it is not exactly one plain request for a record. */
function createAnswering(find: FastPathOptions['find']): (chunk: Buffer) => FastPathResponse | undefined {
  const readCoding = createHeaderMemory()
  return (chunk) => {
    const text = chunk.toString('latin1')
    const line = text.indexOf('\r\n')
    if (!text.startsWith('GET /') || !text.startsWith(VERSION, line - VERSION.length)) return undefined
    const coding = readCoding(text.slice(line))
    if (coding === null) return undefined
    try {
      return find(text.slice(4, line - VERSION.length), coding)
    } catch {
      return undefined // the longer way meets the error as well, and knows how to report it
    }
  }
}

/**
 * Collects answers until all requests that have arrived are processed (the end of the event loop iteration), then sends
 * them in one write. A client process on a busy machine is then woken once for many answers instead of once for each:
 * measured, 10 to 30 % less time for an answer, kernel included.
 */
function createResponseQueue(): (send: () => void) => void {
  let due: (() => void)[] = []
  const sendAll = (): void => {
    const now = due
    due = []
    for (const send of now) send()
  }
  return (send) => {
    if (due.push(send) === 1) setImmediate(sendAll)
  }
}

const clock = { second: 0, text: '' }

/** The Date header, formatted once a second. Real time: it has to agree with Node's own. */
function dateNow(): string {
  const now = Date.now()
  const second = Math.floor(now / 1000)
  if (second !== clock.second) {
    clock.second = second
    clock.text = formatHttpDate(second)
  }
  return clock.text
}
