import { EventEmitter } from 'node:events'
import { type Socket, connect } from 'node:net'
import { CLIENT_BYTES, createAccount } from '../../core/connections/account.ts'
import { openFastRecords } from '../feeds/fast-records.ts'
import type { FromServing, ServingStart, ToServing } from './messages.ts'
import type { ThreadRecords } from './records.ts'
import { createAnswerCounts } from './shared.ts'

/** The connections of a serving thread. */
interface Clients {
  /** Asks the main thread to admit a new connection, which is paused. */
  readonly add: (socket: Socket) => void
  /** Does what the main thread decided about a connection. */
  decide(message: Extract<ToServing, { id: number }>): void
  /** Lets the connections finish what they send, and closes them; what was handed over ends with the main thread's side. */
  close(): void
  /** Closes all at once. */
  cut(): void
}

interface Client {
  readonly id: number
  readonly slot: number
  readonly socket: Socket
  /** The connection to the main thread, once it was handed over. */
  link: Socket | null
}

/** Pause before a connection is handed over again that found too many before it, milliseconds. */
const BUSY_MS = 20
/** A client that takes nothing of what is left to send for this long is cut off, milliseconds, as by the main thread. */
const STALLED_MS = 120_000

const ignore = (): void => undefined

/**
 * Answers plain GETs of records on the connections that this thread accepted. Every connection is admitted by the main
 * thread, which counts them all; one that asks for anything else is handed over to it, and this thread only copies bytes.
 */
export function createClients(
  start: ServingStart,
  { served, heads, isBehind }: ThreadRecords,
  refresh: () => void,
  tell: (message: FromServing) => void,
): Clients {
  const open = new Map<number, Client>()
  const bySocket = new Map<Socket, Client>()
  const slots = createSlots(new Uint32Array(start.activity))
  const counts = createAnswerCounts(start.bounds, start.counts)
  let last = 0
  const log = (message: string): void => tell({ type: 'log', level: 'error', message })
  const give = (client: Client): void => handOver(client, start, log)
  const admitted = new EventEmitter().on('connection', (socket: Socket) => {
    const client = bySocket.get(socket)
    if (client !== undefined) give(client)
  })
  const fastPath = openFastRecords(admitted, served, heads, {
    ...fastOptions(start),
    isBehind,
    refresh,
    onAnswered(seconds, socket) {
      counts.add(seconds)
      slots.count(bySocket.get(socket)?.slot ?? 0)
    },
  })
  const remove = ({ id, slot, socket, link }: Client): void => {
    open.delete(id)
    bySocket.delete(socket)
    slots.free(slot)
    link?.destroy()
    tell({ type: 'closed', id })
  }
  return {
    add(socket) {
      const { remoteAddress, remotePort, remoteFamily, localAddress, localPort } = socket
      socket.on('error', ignore) // `close` follows
      if (remoteAddress === undefined || remotePort === undefined) return void socket.destroy()
      const client: Client = { id: ++last, slot: slots.take(), socket, link: null }
      const { id, slot } = client
      open.set(id, client)
      bySocket.set(socket, client)
      socket.once('close', () => remove(client))
      const addresses = { remoteAddress, remotePort, remoteFamily, localAddress, localPort }
      tell({ type: 'opened', id, slot, ...addresses })
    },
    decide(message) {
      const client = open.get(message.id)
      if (client === undefined) return // closed meanwhile
      if (message.type === 'end') endClient(client)
      else if (!message.isFast) give(client)
      else {
        admitted.emit('connection', client.socket)
        if (client.link === null) client.socket.resume()
      }
    },
    close: () => fastPath.close(),
    cut: () => open.forEach(({ socket }) => socket.destroy()),
  }
}

/** How the fast path runs on a thread that has no other. */
function fastOptions({ settings: { server } }: ServingStart) {
  return {
    isEnabled: () => true,
    takes: () => true,
    resumes: false,
    keepAliveSeconds: server.keepAliveSeconds,
    event: 'connection' as const,
    account: createAccount({ bytes: CLIENT_BYTES / server.threads }),
  }
}

/** Copies the bytes of a connection to the main thread and back. Nothing is read from it before the main thread takes it. */
function handOver(client: Client, start: ServingStart, log: (message: string) => void): void {
  const { socket, id } = client
  const { handOver: place, thread } = start
  const link = connect({ path: place.path, allowHalfOpen: true })
  client.link = link
  let isBusy = false
  const onFault = (error: NodeJS.ErrnoException): void => {
    isBusy = error.code === 'EAGAIN'
    if (!isBusy) log(`a connection could not be handed over to the main thread (${error.message})`)
  }
  link.once('error', onFault).on('error', ignore)
  link.once('connect', () => {
    link.off('error', onFault)
    link.write(`${place.token} ${thread} ${id}\n`)
    socket.pipe(link)
    link.pipe(socket)
  })
  link.once('close', () => {
    if (!isBusy || socket.destroyed) return endClient(client)
    setTimeout(() => handOver(client, start, log), BUSY_MS)
  })
}

/** Closes a connection: at once, or, handed over, when all that the main thread wrote to it is sent. */
function endClient({ socket, link }: Client): void {
  if (link === null) return void socket.destroy()
  socket.setTimeout(STALLED_MS, () => socket.destroy())
  const end = (): void => socket.destroySoon()
  if (link.readableEnded || link.destroyed) end()
  else link.once('end', end)
}

/** Places in the activity memory, each of one connection, as few as possible. */
function createSlots(activity: Uint32Array) {
  const unused: number[] = []
  let next = 0
  return {
    take(): number {
      const slot = unused.pop() ?? next++
      activity[slot] = 0
      return slot
    },
    count(slot: number): void {
      activity[slot] = (activity[slot] ?? 0) + 1
    },
    free: (slot: number): void => void unused.push(slot),
  }
}
