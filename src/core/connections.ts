import type { Server, ServerResponse, IncomingMessage } from 'node:http'
import type { Socket } from 'node:net'

/** Why a connection was closed or refused, as the metrics name it. */
type ClosedFor = 'silent' | 'idle' | 'full' | 'address'

/** How many connections there may be, and who is told of those that were too many. */
export interface ConnectionOptions {
  /** Connections at the same time (`server.maxConnections`). */
  readonly most: number
  /** Of one address; 0: no limit (`server.maxConnectionsPerAddress`). */
  readonly mostPerAddress: number
  /** Connections beyond `most` that `isReserved` tells from the others; none when not given. */
  readonly reserve?: number
  /** Addresses that stand for many clients, such as a trusted proxy: the limit for one address is not theirs. */
  readonly isShared?: (address: string) => boolean
  readonly log: { warn(fields: object, message: string): void } | null
  /** Counts connections that were closed or refused. */
  readonly onClosed: (why: ClosedFor, count: number) => void
}

interface Connection {
  readonly socket: Socket
  readonly address: string
  /** Requests that the HTTP server has parsed, and those of them that are not answered yet. */
  requests: number
  active: number
  /** Bytes that had moved at the last look, and when they last moved, milliseconds of the monotonic clock. */
  bytes: number
  movedAt: number
}

/** A line in the log for one reason at most this often, milliseconds. */
const LOG_MS = 10_000
/** With more than half of the places taken, it is looked this often at which connections move, milliseconds. */
const LOOK_MS = 1_000
/** Of the silent connections this fraction of all is closed at once, so that a flood of new ones is not searched for each. */
const BATCH = 1 / 64

const reserved = new WeakSet<object>()

/** Whether a connection came when all others were in use: it is for the health page alone. */
export function isReserved(socket: object): boolean {
  return reserved.has(socket)
}

/**
 * Bounds the connections of a server. When all places are taken, those that never sent a whole request go first, the oldest
 * before the others; then idle ones, the longest idle first; a connection with a request under way never does. So clients
 * that connect and stay silent shut nobody out, whatever their number. Call it last: it stands before all other listeners.
 */
export function limitConnections(server: Server, options: ConnectionOptions): void {
  const { most, mostPerAddress, reserve = 0, isShared = () => false } = options
  const open = new Map<string, Connection>()
  const report = createReport(options)
  const end = (connection: Connection): void => {
    open.delete(keyOf(connection.socket))
    connection.socket.destroy()
  }
  const makeRoom = (among: Iterable<Connection>, batch: number): boolean => {
    const [why, found] = findSpare(among)
    const chosen = found.slice(0, why === 'silent' ? batch : 1)
    for (const one of chosen) end(one)
    if (chosen.length > 0) report(why, chosen.length)
    return chosen.length > 0
  }
  const refuse = (socket: Socket, why: ClosedFor): false => {
    socket.destroy()
    report(why, 1)
    return false
  }
  const admit = (socket: Socket): boolean => {
    const address = socket.remoteAddress ?? ''
    if (mostPerAddress > 0 && !isShared(address)) {
      const own = [...open.values()].filter((one) => one.address === address)
      if (own.length >= mostPerAddress && !makeRoom(own, 1)) return refuse(socket, 'address')
    }
    if (open.size >= most && !makeRoom(open.values(), Math.ceil(most * BATCH))) {
      if (open.size >= most + reserve) return refuse(socket, 'full')
      reserved.add(socket)
      report('full', 1)
    }
    const key = keyOf(socket)
    const connection = { socket, address, requests: 0, active: 0, bytes: 0, movedAt: clock() }
    open.set(key, connection)
    socket.once('close', () => {
      if (open.get(key) === connection) open.delete(key)
    })
    return true
  }
  stand(server, admit)
  follow(server, (socket) => open.get(keyOf(socket)))
  const looking = setInterval(() => {
    if (open.size > most / 2) for (const one of open.values()) look(one)
  }, LOOK_MS).unref()
  server.once('close', () => clearInterval(looking))
}

/** A connection is known by its other end: behind TLS, requests come with another socket than the connection did. */
function keyOf({ remoteAddress = '', remotePort = 0 }: Socket): string {
  return `${remoteAddress} ${remotePort}`
}

const clock = (): number => performance.now()

function look(connection: Connection): void {
  const { socket } = connection
  const bytes = socket.bytesRead + socket.bytesWritten
  if (bytes !== connection.bytes) connection.movedAt = clock()
  connection.bytes = bytes
}

/** Connections that may go, in the order in which they do: those without any whole request, or else those that are idle. */
function findSpare(among: Iterable<Connection>): ['silent' | 'idle', Connection[]] {
  const waiting = [...among].filter(({ active }) => active === 0)
  // Records go out by the fast lane, whose requests the HTTP server does not see.
  const silent = waiting.filter(({ requests, socket }) => requests + socket.bytesWritten === 0)
  if (silent.length > 0) return ['silent', silent]
  waiting.forEach(look)
  return ['idle', waiting.sort((one, other) => one.movedAt - other.movedAt)]
}

/** Puts a check before everything that listens for connections. */
function stand(server: Server, admit: (socket: Socket) => boolean): void {
  const listeners = server.listeners('connection') as ((this: Server, socket: Socket) => void)[]
  server.removeAllListeners('connection')
  server.on('connection', (socket: Socket) => {
    if (admit(socket)) for (const listener of listeners) listener.call(server, socket)
  })
}

/** Counts the requests of each connection. */
function follow(server: Server, find: (socket: Socket) => Connection | undefined): void {
  const onRequest = ({ socket }: IncomingMessage, response: ServerResponse): void => {
    const connection = find(socket)
    if (connection === undefined) return
    connection.requests++
    connection.active++
    response.once('close', () => {
      connection.active--
      connection.movedAt = clock()
    })
  }
  server.prependListener('request', onRequest).prependListener('checkExpectation', onRequest)
}

/** Counts, and tells the log at once of the first and every ten seconds of all others. */
function createReport({ most, log, onClosed }: ConnectionOptions) {
  const texts: Record<ClosedFor, string> = {
    silent: 'that had sent no whole request were closed to make room',
    idle: 'that were idle were closed to make room',
    full: 'came when all others were in use: they are refused, or get the health page alone',
    address: 'were refused: their address has as many as server.maxConnectionsPerAddress allows',
  }
  const since = new Map<ClosedFor, { at: number; count: number }>()
  return (why: ClosedFor, count: number): void => {
    onClosed(why, count)
    const known = since.get(why) ?? { at: -Infinity, count: 0 }
    known.count += count
    since.set(why, known)
    if (clock() - known.at < LOG_MS) return
    const message = `${known.count} connections ${texts[why]} (server.maxConnections is ${most})`
    log?.warn({ reason: why, connections: known.count }, message)
    since.set(why, { at: clock(), count: 0 })
  }
}
