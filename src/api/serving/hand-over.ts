import { randomBytes, timingSafeEqual } from 'node:crypto'
import { chmodSync, rmSync } from 'node:fs'
import { type Socket, createServer } from 'node:net'
import { join } from 'node:path'
import { MirrorError, messageOf } from '../../core/errors.ts'
import { PRIVATE_FOLDER, makeFolder } from '../../core/files.ts'
import { WAITING_BYTES } from '../http/node-server.ts'
import type { HandOverPlace } from './messages.ts'

/** Where the main thread takes connections over from the other serving threads. */
export interface HandOver {
  readonly place: HandOverPlace
  /** Accepts no more; resolves when all that were accepted are closed. Removes the socket. */
  close(): Promise<void>
}

/** The first line of a connection: the token, the thread, and the number of the connection there. */
const MOST_PREFACE_BYTES = 128
/** A serving thread sends it at once. */
const PREFACE_MS = 10_000
/** Connections that wait for the main thread at most; the system may allow fewer. */
const BACKLOG = 4096
/** A folder in the data folder, which one daemon uses at a time. */
const FOLDER = 'serving'

/**
 * Opens a unix socket that only this user can reach, in a folder of mode 0700, and only this process can use: the first line
 * has a random token. `take` gets the connections, paused, with everything that the client sent; it returns false for one
 * that it does not know. Throws `config` where no socket can be made.
 */
export async function openHandOver(
  dataDir: string,
  take: (socket: Socket, thread: number, id: number) => boolean,
): Promise<HandOver> {
  const folder = join(dataDir, FOLDER)
  const path = join(folder, 's')
  const token = randomBytes(16).toString('hex')
  rmSync(folder, { recursive: true, force: true }) // a killed daemon left it
  makeFolder(folder)
  chmodSync(folder, PRIVATE_FOLDER)
  const options = { allowHalfOpen: true, highWaterMark: WAITING_BYTES }
  const server = createServer(options, (socket) => {
    readPreface(socket, (line) => {
      const [, given = '', thread, id] = /^([\da-f]{32}) (\d+) (\d+)$/.exec(line) ?? []
      if (!timingSafeEqual(Buffer.from(given.padEnd(32)), Buffer.from(token))) return false
      return take(socket, Number(thread), Number(id))
    })
  })
  const listening: PromiseWithResolvers<void> = Promise.withResolvers()
  server.once('error', listening.reject).listen({ path, backlog: BACKLOG }, listening.resolve)
  await listening.promise.catch((error: unknown) => {
    rmSync(folder, { recursive: true, force: true })
    const message = `${path}, the socket of the serving threads, cannot be opened (${messageOf(error)}): set server.threads to 1, or data.dir to a shorter path on a local disk`
    throw new MirrorError('config', message, { cause: error })
  })
  return {
    place: { path, token },
    async close() {
      await new Promise((resolve) => server.close(resolve))
      rmSync(folder, { recursive: true, force: true })
    },
  }
}

/** Reads the first line of a connection and gives the rest back; destroys the connection when the line is refused. */
function readPreface(socket: Socket, isTaken: (line: string) => boolean): void {
  let read = Buffer.alloc(0)
  const destroy = (): void => void socket.destroy()
  const onData = (chunk: Buffer): void => {
    read = Buffer.concat([read, chunk])
    const end = read.indexOf('\n')
    if (end < 0 && read.length < MOST_PREFACE_BYTES) return
    socket.off('data', onData).off('end', destroy).off('timeout', destroy).off('error', destroy)
    socket.setTimeout(0)
    socket.pause()
    if (end + 1 < read.length) socket.unshift(read.subarray(end + 1))
    if (isTaken(read.toString('latin1', 0, Math.max(end, 0)))) socket.resume()
    else socket.on('error', () => undefined).destroy()
  }
  socket.on('data', onData).on('end', destroy).on('timeout', destroy).on('error', destroy)
  socket.setTimeout(PREFACE_MS)
}
