import type { Server, ServerResponse, IncomingMessage } from 'node:http'
import type { Socket } from 'node:net'
import { type Active, createActivityWatch, updateActivity } from './activity.ts'
import { closeOnlySent } from './idle.ts'
import { counted } from '../text.ts'

/** Stands for every connection of a unix socket in a list of addresses (`server.trustProxy`). */
export const UNIX_PEER = 'unix'

/** Why a connection was closed or refused; the label of the metrics. */
type ClosedFor = 'silent' | 'idle' | 'full' | 'address'

/** Limits for connections, and callbacks for those that exceed them. */
export interface ConnectionOptions {
  /** Maximum number of concurrent connections (`server.maxConnections`). */
  readonly most: number
  /** Maximum per client address; 0: no limit (`server.maxConnectionsPerAddress`). */
  readonly mostPerAddress: number
  /** Additional connections beyond `most`, marked by `isReserved`; default 0. */
  readonly reserve?: number
  /** Addresses used by many clients, such as a trusted proxy: the limit per address does not apply to them. */
  readonly isShared?: (address: string) => boolean
  readonly log: { warn(fields: object, message: string): void } | null
  /** Counts connections that were closed or refused. */
  readonly onClosed: (why: ClosedFor, count: number) => void
}

/** What the limit needs of a connection: a socket, or one that another thread has. */
export interface LimitedConnection extends Pick<
  Socket,
  'remoteAddress' | 'remotePort' | 'bytesRead' | 'bytesWritten' | 'writableLength'
> {
  once(event: 'close', call: () => void): unknown
  destroy(): unknown
}

/** Admits connections, and ends those of a server that stops. */
export interface ConnectionLimit {
  /** Counts a connection that the server did not accept itself; false: it was refused and is destroyed. */
  readonly admit: (connection: LimitedConnection) => boolean
  /**
   * Closes connections on which nothing came or went for a second, without a request in progress or bytes that the client
   * has still to read: those that were opened and not used are unknown to `closeIdleConnections`.
   */
  closeQuiet(): void
  /** Closes all connections at once, also those in a TLS handshake, which the HTTP server does not know. */
  closeAll(): void
}

interface Connection extends Active {
  readonly key: unknown
  readonly socket: LimitedConnection
  /** What answers are written to: the socket, or the one above it in TLS. */
  answers: Pick<Socket, 'writableLength'>
  readonly address: string
  /** Requests that the HTTP server has parsed, and those of them without a complete response. */
  requests: number
  active: number
}

const UNUSED = { requests: 0, active: 0, bytes: 0 }

/** Minimum interval between log lines for one reason, milliseconds. */
const LOG_MS = 10_000
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
export function shareReserve(from: object, to: object): void {
  if (reserved.has(from)) reserved.add(to)
}

/**
 * Bounds the connections of a server. When all are in use, connections that never sent a complete request are closed
 * first, oldest first; then idle ones, longest idle first; a connection with an active request is never closed. Clients
 * that connect and stay silent therefore never block others. Call it last: its check runs before all other listeners.
 */
export function limitConnections(server: Server, options: ConnectionOptions): ConnectionLimit {
  const { reserve = 0, isShared = () => false } = options
  const open = new Map<unknown, Connection>()
  const report = createReport(options)
  const watchActivity = createActivityWatch(server, open, options)
  const end = (connection: Connection): void => {
    open.delete(connection.key)
    connection.socket.destroy()
  }
  const makeRoom = (among: Iterable<Connection>, batch: number): boolean => {
    const [why, found] = findSpare(among)
    const chosen = found.slice(0, why === 'silent' ? batch : 1)
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
    const address = socket.remoteAddress ?? ''
    // Connections of a unix socket have no address.
    if (mostPerAddress > 0 && address !== '' && !isShared(address)) {
      const own = [...open.values()].filter((one) => one.address === address)
      if (own.length >= mostPerAddress && !makeRoom(own, 1)) return refuse(socket, 'address')
    }
    if (open.size >= most) makeRoom(open.values(), Math.ceil(most * BATCH))
    // Still full: nothing could be closed, or what was closed was one of the reserve.
    if (open.size >= most) {
      if (open.size >= most + reserve) return refuse(socket, 'full')
      reserved.add(socket)
      report('full', 1)
    }
    const key = keyOf(socket)
    const movedAt = performance.now()
    const connection = { key, socket, answers: socket, address, ...UNUSED, movedAt }
    open.set(key, connection)
    watchActivity()
    socket.once('close', () => open.get(key) === connection && open.delete(key))
    return true
  }
  interceptConnections(server, admit)
  closeOnlySent(server)
  server.prependListener('secureConnection', (socket: Socket) => {
    const below = open.get(keyOf(socket))
    if (below === undefined) return
    below.answers = socket
    shareReserve(below.socket, socket)
  })
  countRequests(server, (socket) => open.get(keyOf(socket)))
  return {
    admit,
    closeQuiet() {
      for (const one of open.values()) if (isQuiet(one)) end(one)
    },
    closeAll: () => open.forEach(end),
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
  if (connection.active > 0 || connection.answers.writableLength > 0) return false
  return performance.now() - connection.movedAt >= QUIET_MS
}

/**
 * Returns the connections that may be closed, in order: those without a complete request, or else those that are idle.
 */
function findSpare(among: Iterable<Connection>): ['silent' | 'idle', Connection[]] {
  const waiting = [...among].filter(({ active }) => active === 0)
  // Records are served on the fast path, whose requests the HTTP server does not see.
  const silent = waiting.filter(({ requests, socket }) => requests + socket.bytesWritten === 0)
  if (silent.length > 0) return ['silent', silent]
  waiting.forEach(updateActivity)
  return ['idle', waiting.sort((one, other) => one.movedAt - other.movedAt)]
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
  const onRequest = ({ socket }: IncomingMessage, response: ServerResponse): void => {
    const connection = find(socket)
    if (connection === undefined) return
    connection.requests++
    connection.active++
    response.once('close', () => {
      connection.active--
      connection.movedAt = performance.now()
    })
  }
  server.prependListener('request', onRequest).prependListener('checkExpectation', onRequest)
}

/** Counts, and logs the first connection of each reason at once and all further ones every ten seconds. */
function createReport(options: ConnectionOptions) {
  const { log, onClosed } = options
  const texts: Record<ClosedFor, string> = {
    silent: 'that had sent no complete request were closed to make room',
    idle: 'that were idle were closed to make room',
    full: 'arrived when all others were in use: they are refused, or get the health page only',
    address: 'were refused: their address has reached server.maxConnectionsPerAddress',
  }
  const since = new Map<ClosedFor, { at: number; count: number }>()
  return (why: ClosedFor, count: number): void => {
    onClosed(why, count)
    const known = since.get(why) ?? { at: -Infinity, count: 0 }
    known.count += count
    since.set(why, known)
    if (performance.now() - known.at < LOG_MS) return
    const message = `${counted(known.count, 'connection')} ${texts[why]} (server.maxConnections is ${options.most})`
    log?.warn({ reason: why, connections: known.count }, message)
    since.set(why, { at: performance.now(), count: 0 })
  }
}
