import type { IncomingMessage, Server, ServerResponse } from 'node:http'
import type { Socket } from 'node:net'
import { counted } from '../text.ts'
import { clientNetwork } from './network.ts'
import { type WarningLog, createCountedLog } from './counted-log.ts'
import { isSlow, type ClientProgress, beginProgress, updateProgress } from './progress.ts'
import type { EventEmitter } from 'node:events'
import { sentBytes } from './sent.ts'

/** Stands for every connection of a unix socket in a list of addresses (`server.trustProxy`). */
export const UNIX_PEER = 'unix'

/** Why a connection was closed or refused; the label of the metrics. */
type ClosedFor = SpareFor | 'full' | 'address'

/** Limits for connections, and callbacks for those that exceed them. */
export interface ConnectionOptions {
  /** Maximum number of concurrent connections (`server.maxConnections`). */
  readonly most: number
  /** Maximum per client address, of IPv6 per /64; 0: no limit (`server.maxConnectionsPerAddress`). */
  readonly mostPerAddress: number
  /** Additional connections beyond `most`, marked by `isReserved`; default 0. */
  readonly reserve?: number
  /** Addresses used by many clients, such as a trusted proxy: the limit per address does not apply to them. */
  readonly isShared?: (address: string) => boolean
  readonly log: WarningLog
  /** Counts connections that were closed or refused. */
  readonly onClosed: (why: ClosedFor, count: number) => void
}

/** What the limit needs of a connection. */
interface LimitedConnection extends Pick<
  Socket,
  'remoteAddress' | 'remotePort' | 'bytesRead' | 'bytesWritten' | 'writableLength'
> {
  once(event: 'close', call: () => void): unknown
  destroy(): unknown
}

/** Admits connections, and ends those of a server that stops. */
export type ConnectionLimit = ReturnType<typeof limitConnections>

interface Connection extends Spare {
  readonly key: unknown
  readonly socket: LimitedConnection
  readonly address: string
  writable: Pick<Socket, 'writableLength'>
  requests: number
  active: number
  last: IncomingMessage | null
  beganAt: number
  bytesBefore: number
}

const UNUSED = { requests: 0, active: 0, last: null, bytesBefore: 0 }

/** After it, a connection without a request in progress is closed when the server stops, milliseconds. */
const QUIET_MS = 1_000
/**
 * Fraction of all connections closed at once when they are silent, so that a flood of connections does not cause a
 * search for each.
 */
const BATCH = 1 / 64

const reserved = new WeakSet<object>()

/** Reports whether a connection was accepted when all others were in use: it gets the health page only. */
export function isReserved(socket: object): boolean {
  return reserved.has(socket)
}

/** Has a connection count as reserved where another one, which stands for the same client, is. */
function shareReserve(from: object, to: object): void {
  if (reserved.has(from)) reserved.add(to)
}

/**
 * Bounds the connections of a server. When all are in use, those that wait for their client are closed first: the ones without a
 * complete request or body, the slowest first, then the ones whose client takes nothing of its answer, then idle ones. A connection
 * whose request is worked on is never closed. Clients that connect and stay silent therefore never block others. Call it last: its
 * check runs before all other listeners.
 */
export function limitConnections(server: Server, options: ConnectionOptions) {
  const { reserve = 0, isShared = () => false } = options
  const { open, of, add, forget } = createRegister()
  const report = createCountedLog({
    ...options,
    onCount: options.onClosed,
    textOf: textsOf(options),
  })
  const watchActivity = createActivityWatch(server, open, options)
  const end = (connection: Connection): void => {
    forget(connection)
    connection.socket.destroy()
  }
  const makeRoom = (among: Iterable<Connection>, most: number): boolean => {
    const [why, found] = findSpare(among)
    const chosen = found.slice(0, why === 'silent' ? Math.ceil(most * BATCH) : 1)
    for (const one of chosen) end(one)
    if (chosen.length > 0) report(why, chosen.length)
    return chosen.length > 0
  }
  const refuse = (socket: LimitedConnection, why: ClosedFor): false => {
    socket.destroy()
    report(why, 1)
    return false
  }
  const admit = (socket: LimitedConnection): boolean => {
    const { most, mostPerAddress } = options // they can change while the server runs
    const address = clientNetwork(socket.remoteAddress ?? '')
    // Connections of a unix socket have no address.
    if (mostPerAddress > 0 && address !== '' && !isShared(socket.remoteAddress ?? '')) {
      const own = of(address)
      const isFull = own !== undefined && own.size >= mostPerAddress
      if (isFull && !makeRoom(own, mostPerAddress)) return refuse(socket, 'address')
    }
    if (open.size >= most) makeRoom(open.values(), most)
    // Still full: nothing could be closed, or what was closed was one of the reserve.
    if (open.size >= most) {
      if (open.size >= most + reserve) return refuse(socket, 'full')
      reserved.add(socket)
      report('full', 1)
    }
    add(socket, address)
    watchActivity()
    return true
  }
  interceptConnections(server, admit)
  closeOnlySent(server)
  server.prependListener('secureConnection', (socket: Socket) => {
    const below = open.get(keyOf(socket))
    if (below === undefined) return
    below.writable = socket
    shareReserve(below.socket, socket)
  })
  countRequests(server, (socket) => open.get(keyOf(socket)))
  return {
    /**
     * Closes connections on which nothing came or went for a second, without a request in progress or bytes that the client
     * has still to read: those that were opened and not used are unknown to `closeIdleConnections`.
     */
    closeQuiet(): void {
      for (const one of open.values()) if (isQuiet(one)) end(one)
    },
    /** Closes all connections at once, also those in a TLS handshake, which the HTTP server does not know. */
    closeAll: (): void => open.forEach(end),
  }
}

/** Creates the register of the open connections, in the order in which they came. */
function createRegister() {
  const open = new Map<unknown, Connection>()
  const byAddress = new Map<string, Set<Connection>>()
  const forget = (connection: Connection): void => {
    if (open.get(connection.key) === connection) open.delete(connection.key)
    const own = byAddress.get(connection.address)
    own?.delete(connection)
    if (own?.size === 0) byAddress.delete(connection.address)
  }
  return {
    open: open as ReadonlyMap<unknown, Connection>,
    of: (address: string): ReadonlySet<Connection> | undefined => byAddress.get(address),
    add: (socket: LimitedConnection, address: string): void => {
      const key = keyOf(socket)
      const activity = newActivity(socket)
      const times = { ...activity, beganAt: activity.movedAt }
      const connection: Connection = { ...UNUSED, ...times, key, socket, writable: socket, address }
      open.set(key, connection)
      const own = byAddress.get(address) ?? new Set()
      byAddress.set(address, own.add(connection))
      socket.once('close', () => forget(connection))
    },
    forget,
  }
}

/**
 * Identifies a connection by its remote address and port: behind TLS, requests have another socket than the connection.
 * A unix socket has neither, and no TLS.
 */
function keyOf(socket: Pick<Socket, 'remoteAddress' | 'remotePort'>): unknown {
  const { remoteAddress, remotePort = 0 } = socket
  return remoteAddress === undefined ? socket : `${remoteAddress} ${remotePort}`
}

function isQuiet(connection: Connection): boolean {
  updateActivity(connection)
  // Records are answered on the fast path, whose requests are not counted.
  if (connection.active > 0 || connection.writable.writableLength > 0) return false
  return performance.now() - connection.movedAt >= QUIET_MS
}

/** Puts a check before all connection listeners. */
function interceptConnections(server: Server, admit: (socket: Socket) => boolean): void {
  const listeners = server.listeners('connection') as ((this: Server, socket: Socket) => void)[]
  server.removeAllListeners('connection')
  server.on('connection', (socket: Socket) => {
    if (admit(socket)) for (const listener of listeners) listener.call(server, socket)
  })
}

/** Counts the requests of each connection. */
function countRequests(server: Server, find: (socket: Socket) => Connection | undefined): void {
  const onRequest = (request: IncomingMessage, response: ServerResponse): void => {
    const connection = find(request.socket)
    if (connection === undefined) return
    connection.requests++
    connection.active++
    connection.last = request
    connection.beganAt = performance.now()
    if (connection.active === 1) connection.answers = followAnswers(connection.socket)
    response.once('close', () => {
      connection.active--
      connection.bytesBefore = connection.socket.bytesRead
      connection.movedAt = performance.now()
    })
  }
  server.prependListener('request', onRequest).prependListener('checkExpectation', onRequest)
}

function textsOf(options: ConnectionOptions): (why: ClosedFor, count: number) => string {
  const texts: Readonly<Record<ClosedFor, string>> = {
    silent: 'that had sent no complete request were closed to make room',
    unread: 'whose clients took nothing of their answers were closed to make room',
    idle: 'that were idle were closed to make room',
    full: 'arrived when all others were in use: they are refused, or get the health page only',
    address: 'were refused: their address has reached server.maxConnectionsPerAddress',
  }
  return (why, count) => `${counted(count, 'connection')} ${texts[why]} (server.maxConnections is ${options.most})`
}

/**
 * Has a server close as idle only connections whose responses the client's system has taken, in `closeIdleConnections`, which
 * `close` calls as well. Node takes a response for finished as soon as it was passed on completely, and cuts off what a
 * slow client has still to read. Node alone knows on which connections the next request has begun, so it is asked first.
 */
function closeOnlySent(server: Server): void {
  /** Responses of a connection that are not sent completely. */
  const unsent = new Map<Socket, number>()
  const onRequest = ({ socket }: IncomingMessage, response: ServerResponse): void => {
    unsent.set(socket, (unsent.get(socket) ?? 0) + 1)
    response.once('close', () => {
      const left = (unsent.get(socket) ?? 0) - 1
      if (left > 0) unsent.set(socket, left)
      else unsent.delete(socket)
    })
  }
  server.prependListener('request', onRequest).prependListener('checkExpectation', onRequest)
  const closeIdle = server.closeIdleConnections.bind(server)
  server.closeIdleConnections = () => {
    const kept = [...unsent.keys()]
    for (const socket of kept) socket.destroy = () => socket // what Node would call now
    try {
      closeIdle()
    } finally {
      for (const socket of kept) Reflect.deleteProperty(socket, 'destroy')
    }
  }
}

/** What decides whether a connection may be closed to make room. */
interface Spare extends Active {
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
type SpareFor = 'silent' | 'unread' | 'idle'

/** A client that takes nothing of its answer for this long is waited for no longer when others need its place, milliseconds. */
const UNREAD_MS = 10_000

/**
 * Returns the connections that may be closed, in order. First those that wait for their client: without a complete request, or
 * with a body that has not come, the slowest first. Then those whose client takes nothing of its answer; then idle ones.
 */
function findSpare<One extends Spare>(among: Iterable<One>): [SpareFor, One[]] {
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

/** What is known of a connection's activity. */
interface Active {
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
function newActivity(socket: Sending): Omit<Active, 'socket'> {
  const answers = followAnswers(socket)
  return { received: 0, movedAt: answers.beganAt, answers }
}

/** Begins to look at what goes to the client of a connection. */
function followAnswers(socket: Sending): ClientProgress {
  return beginProgress('answer', () => sentBytes(socket))
}

/** Looks whether a connection has sent or received anything since the last call. */
function updateActivity(connection: Active): void {
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
function createActivityWatch(
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
