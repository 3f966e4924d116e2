import type { IncomingMessage, ServerResponse } from 'node:http'
import type { Socket } from 'node:net'
import type { HttpHandler } from './server.ts'

/** Maximum pipelined requests answered per connection and event-loop iteration. */
const PER_ITERATION = 32
/** Requests that may wait on one connection before no more of it is read. */
const READ_ON_BELOW = 64
/** The same for the bytes of their heads: each may have 64 KiB. */
const HEADS_BELOW = 64 * 1024
/** More than a client that reads its answers can ever have waiting: a few chunks of the smallest requests. */
const MAX_WAITING = 8192

/** A request, and the answer to it. */
interface Exchange {
  readonly request: IncomingMessage
  readonly response: ServerResponse
}

interface Line {
  readonly waiting: Exchange[]
  /** Bytes of the heads that wait. */
  heads: number
  /** What is being answered. */
  current: Exchange | undefined
  paused: boolean
  answered: number
  /** Called when the last request that came is answered. */
  last: (() => void) | null
}

const lines = new WeakMap<object, Line>()

/**
 * Calls `work` when every whole request that came on a connection before it broke is answered; at once when none waits.
 * Of several only the first is called, for the connection ends with it.
 */
export function afterAnswers(socket: object, work: () => void): void {
  const line = lines.get(socket)
  if (line?.current === undefined || (line.waiting.length === 0 && isBroken(line.current))) work()
  else line.last ??= work
}

/** Whether the rest of a request cannot come, once its connection sent what is not HTTP, and nothing of its answer was sent. */
function isBroken({ request, response }: Exchange): boolean {
  return !request.complete && !response.headersSent
}

/** Whether requests of a connection are being answered, so that it may not be read from meanwhile. */
export function isAnswering(socket: object): boolean {
  return lines.get(socket)?.current !== undefined
}

/**
 * The handler, called for one request of a connection at a time. Node calls it for every pipelined request at once,
 * whether or not the client takes the answers; here the next answer is made when the one before it has left, so that
 * a client that does not read costs one answer. A connection with too many requests waiting is cut off.
 */
export function limitPipelining(handler: HttpHandler): HttpHandler {
  return (request, response) => {
    const { socket } = request
    let line = lines.get(socket)
    if (line === undefined) {
      line = { waiting: [], heads: 0, current: undefined, paused: false, answered: 0, last: null }
      lines.set(socket, line)
    }
    if (line.current === undefined) return start(handler, socket, line, { request, response })
    line.heads += headBytes(request)
    const isLong = line.waiting.push({ request, response }) > READ_ON_BELOW
    if (isLong || line.heads > HEADS_BELOW) pause(socket, line)
    if (line.waiting.length > MAX_WAITING) socket.destroy()
  }
}

function headBytes({ url = '', rawHeaders }: IncomingMessage): number {
  return rawHeaders.reduce((bytes, text) => bytes + text.length, url.length)
}

function start(handler: HttpHandler, socket: Socket, line: Line, exchange: Exchange): void {
  const { request, response } = exchange
  line.current = exchange
  response.once('close', () => goOn(handler, socket, line))
  handler(request, response)
}

/** Answers the next waiting request of the connection: now, or in the next iteration when the limit of this one is reached. */
function goOn(handler: HttpHandler, socket: Socket, line: Line): void {
  if (socket.destroyed) line.waiting.length = 0
  if (line.waiting.length === 0) {
    line.heads = 0
    line.current = undefined
    line.answered = 0
    if (line.paused) {
      line.paused = false
      socket.resume()
    }
    line.last?.()
    return
  }
  const next = (): void => {
    const exchange = line.waiting.shift()
    if (exchange === undefined) return
    if (line.last !== null && isBroken(exchange)) return line.last()
    line.heads -= headBytes(exchange.request)
    start(handler, socket, line, exchange)
  }
  if (++line.answered % PER_ITERATION !== 0) return next()
  // Node reads on after each answer, two ticks from here.
  if (line.paused) process.nextTick(() => socket.pause())
  setImmediate(next)
}

/** Reads no more of a connection: from the next tick on, for Node begins to read again at the end of each request. */
function pause(socket: Socket, line: Line): void {
  if (line.paused) return
  line.paused = true
  process.nextTick(() => {
    if (line.paused) socket.pause()
  })
}
