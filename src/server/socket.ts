import { type Stats, chmodSync, linkSync, lstatSync, rmSync } from 'node:fs'
import { dirname, join } from 'node:path'
import { setTimeout as sleep } from 'node:timers/promises'
import { MirrorError, systemCode } from '../base/errors.ts'
import { connectLocally } from '../base/offline.ts'
import { lockFile } from '../store/database/lock.ts'
import { makeTemporary } from '../store/temporary.ts'

/** How often the path is tried while other programs remove and create sockets there, and the pause, milliseconds. */
const TRIES = 100
const RETRY_MS = 20

/**
 * Opens a unix socket with this mode, and returns a function that removes it, unless its path is another program's by then.
 * `listen` opens it under the path that it is given: in a new folder that only this user may enter, where the mode is set. It
 * gets its own path by a hard link, which follows no symbolic link and never replaces a file: of two daemons that start at the
 * same time, one gets the path. A socket that a killed daemon left is removed: one that refuses connections. A lock on `PATH.lock`, which stays, guards that. Throws `config`
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
  const message = `the socket ${path} ${why}: set server.socket to another path, or end that program`
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
