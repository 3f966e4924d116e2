import { lookup } from 'node:dns/promises'
import type { Server } from 'node:http'
import { type AddressInfo, type Server as NetServer, createServer, isIP } from 'node:net'
import { type Stats, chmodSync, linkSync, lstatSync, rmSync } from 'node:fs'
import { dirname, join } from 'node:path'
import { setTimeout as sleep } from 'node:timers/promises'
import type { Config } from '../config/schema.ts'
import { listenOn, shownHost } from '../base/connections/server.ts'
import { MirrorError, messageOf, systemCode } from '../base/errors.ts'
import { connectLocally } from '../base/offline.ts'
import { lockFile } from '../store/database/lock.ts'
import { makeTemporary } from '../store/temporary.ts'

/** Where the server can be reached. */
export interface ServerAddress {
  /** `http://…`, `https://…`, or `unix:` and the path of a socket. */
  url: string
  /** 0 for a unix socket. */
  port: number
}

/** Of the pages' framework, what opens the address and what asks the pages themselves. */
interface Listenable {
  readonly server: Server
  listen(at: { host: string; port: number; backlog: number } | { path: string; backlog: number }): Promise<unknown>
  ready(): PromiseLike<unknown>
  inject(path: string): Promise<{ readonly statusCode: number }>
}

/** Connections that the system accepts before the program does. */
const BACKLOG = 1024

/** Opens the address of the settings, and reports what is known of it. */
export function createListening(app: Listenable, settings: Config['server']) {
  const { host, port, socket } = settings
  void app.ready().then(undefined, () => undefined) // completes the pages before the address is wanted; `listen` reports a failure
  const address = (): ServerAddress | null => addressOf(app.server.address(), settings)
  const listen = async (): Promise<void> => {
    if (socket === null) {
      await app.listen({ host: await oneAddress(host), port, backlog: BACKLOG })
    } else {
      const mode = Number.parseInt(settings.socketMode, 8)
      const open = (path: string): Promise<unknown> => app.listen({ path, backlog: BACKLOG })
      const remove = await openSocket(socket, mode, open).catch((error: unknown) => {
        app.server.close()
        throw error
      })
      app.server.once('close', remove)
    }
  }
  return {
    /** Throws `config` when the address cannot be used. */
    async listen(): Promise<ServerAddress> {
      await listen().catch((error: unknown) => {
        throw nameListenError(error, settings)
      })
      return address() ?? { url: '', port }
    },
    /** Null while not listening. */
    address,
    /** True when the serving thread listens and answers its health page. */
    answers: async () => app.server.listening && (await app.inject('/-/health')).statusCode === 200,
  }
}

/**
 * Resolves a name to one address, IPv4 where it has one. For some names the framework would otherwise open a second listener,
 * whose connections are neither limited nor answered by the fast path.
 */
async function oneAddress(host: string): Promise<string> {
  return isIP(host) === 0 ? (await lookup(host, { order: 'ipv4first' })).address : host
}

function closed(server: NetServer): Promise<unknown> {
  return new Promise((resolve) => server.close(resolve))
}

/**
 * Takes the address of the settings, answers nothing there, and gives it back when `work` has ended: a start tries it before it
 * changes anything. Throws `config` when it cannot be used, as `listen` does.
 */
export async function withAddress(settings: Config['server'], work: () => Promise<void>): Promise<void> {
  const { host, port, socket, socketMode } = settings
  const server = createServer((connection) => connection.destroy())
  const mode = Number.parseInt(socketMode, 8)
  try {
    if (socket === null) await listenOn(server, { host: await oneAddress(host), port })
    else server.once('close', await openSocket(socket, mode, (path) => listenOn(server, { path })))
  } catch (error) {
    server.close()
    throw nameListenError(error, settings)
  }
  await work().finally(() => closed(server))
}

/** Returns the address to show; a wildcard address is shown as localhost. */
function addressOf(
  bound: AddressInfo | string | null,
  { host, certFile, socket }: Config['server'],
): ServerAddress | null {
  if (bound === null) return null
  if (typeof bound === 'string') return { url: `unix:${socket ?? bound}`, port: 0 }
  const scheme = certFile === null ? 'http' : 'https'
  return { url: `${scheme}://${shownHost(host)}:${bound.port}`, port: bound.port }
}

/** Returns the address that a server is bound to, as Node reports it; null while it is not bound, and for a unix socket. */
export function boundAddress(bound: AddressInfo | string | null): string | null {
  return bound === null || typeof bound === 'string' ? null : bound.address
}

const FAULTS: Readonly<Partial<Record<string, string>>> = {
  EADDRINUSE: 'is in use by another program: set server.listen to another port, or to port 0 for any',
  EACCES: 'may not be used by this user: ports below 1024 are reserved, set server.listen to a higher one',
  EADDRNOTAVAIL: 'is not an address of this machine: set server.listen',
  EINVAL:
    'is not an address of this machine, or a link-local one without its interface (fe80::1%eth0): set server.listen',
  EAFNOSUPPORT: 'is of an address family that this machine does not have: set server.listen',
  ENOTFOUND: 'is not a name that resolves: set server.listen',
  EAI_AGAIN: 'is a name that cannot be resolved now: set server.listen to an address',
}

const SOCKET_FAULTS: Readonly<Partial<Record<string, string>>> = {
  EADDRINUSE: 'is in use by another program: set server.listen to another path',
  EACCES: 'may not be created or opened by this user: set server.listen to a folder of its own',
  EPERM: 'may not be created by this user: set server.listen to a folder of its own',
  EROFS: 'is on a read-only file system: set server.listen to another path',
  ENOENT: 'is in a folder that does not exist: create it, or set server.listen to another path',
  ENOTDIR: 'is not in a folder: set server.listen to another path',
  EINVAL: 'is not a path of a socket: set server.listen to a shorter one',
}

/** A `config` error for an address that cannot be used; anything else unchanged. */
function nameListenError(error: unknown, { host, port, socket }: Config['server']): unknown {
  const faults = socket === null ? FAULTS : SOCKET_FAULTS
  const fault = faults[systemCode(error) ?? '']
  if (fault === undefined || error instanceof MirrorError) return error
  const address = socket === null ? `${host} port ${port}` : `the socket ${socket}`
  const message = `${address} ${fault} (${messageOf(error)})`
  return new MirrorError('config', message, { cause: error })
}

/** How often the path is tried while other programs remove and create sockets there, and the pause, milliseconds. */
const TRIES = 100
const RETRY_MS = 20

/**
 * Opens a unix socket with this mode, and returns a function that removes it, unless its path is another program's by then.
 * `listen` opens it under the path that it is given: in a new folder that only this user may enter, where the mode is set. It
 * gets its own path by a hard link, which follows no symbolic link and never replaces a file: of two daemons that start at the
 * same time, one gets the path. A socket that a killed daemon left is removed: one that refuses connections. A lock on `PATH.lock`, which stays, sees to that. Throws `config`
 * for a path that is in use or no socket, else the system's error.
 */
export async function openSocket(
  path: string,
  mode: number,
  listen: (path: string) => Promise<unknown>,
): Promise<() => void> {
  refuseOther(path, lstatSync(path, { throwIfNoEntry: false }))
  if (await isAnswered(path)) throw taken(path, IN_USE)
  const temporary = makeTemporary(dirname(path))
  try {
    const draft = join(temporary.folder, 's')
    await listen(draft)
    chmodSync(draft, mode)
    const own = lstatSync(draft)
    for (let tries = 1; !isLinked(draft, path); tries++) {
      if (tries > TRIES) throw taken(path, IN_USE)
      await clear(path)
    }
    return () => removeOwn(path, own)
  } finally {
    temporary.remove()
  }
}

const IN_USE = 'is in use by another program'

/** Reports whether the socket got the path; not when anything is there. */
function isLinked(draft: string, path: string): boolean {
  try {
    linkSync(draft, path)
    return true
  } catch (error) {
    if (systemCode(error) === 'EEXIST') return false
    throw error
  }
}

/**
 * Removes a socket that nothing answers on. Only the program with the lock removes one, and nothing gets a path that exists, so
 * what is removed is what did not answer. Throws `config` for anything else.
 */
async function clear(path: string): Promise<void> {
  const lock = lockFile(`${path}.lock`)
  if (lock === null) return sleep(RETRY_MS)
  try {
    refuseOther(path, lstatSync(path, { throwIfNoEntry: false }))
    if (await isAnswered(path)) throw taken(path, IN_USE)
    rmSync(path, { force: true })
  } finally {
    lock.release()
  }
}

function refuseOther(path: string, found: Stats | undefined): void {
  if (found === undefined || found.isSocket()) return
  throw taken(path, found.isSymbolicLink() ? 'is a symbolic link, not a socket' : 'is a file, not a socket')
}

function taken(path: string, why: string): MirrorError {
  const message = `the socket ${path} ${why}: set server.listen to another path, or end that program`
  return new MirrorError('config', message)
}

/** Reports whether a program listens on a socket; one that cannot be asked counts as used. */
function isAnswered(path: string): Promise<boolean> {
  return new Promise((resolve) => {
    const socket = connectLocally(path)
    socket.once('connect', () => {
      socket.destroy()
      resolve(true)
    })
    socket.once('error', (error) => resolve(!['ECONNREFUSED', 'ENOENT'].includes(systemCode(error) ?? '')))
  })
}

function removeOwn(path: string, { dev, ino }: Stats): void {
  const found = lstatSync(path, { throwIfNoEntry: false })
  if (found?.dev === dev && found.ino === ino) rmSync(path, { force: true })
}
