import { type Stats, lstatSync, mkdtempSync, readdirSync, rmSync, rmdirSync } from 'node:fs'
import { join } from 'node:path'
import { isPresent } from '../base/files.ts'
import { type Lock, lockFile } from './database/lock.ts'

/** A folder for what is not complete yet, or not to stay; mode 0700. */
export interface Temporary {
  readonly folder: string
  /** Removes it with its content; a second call has no effect. */
  remove(): void
}

/** What the names of such folders begin with: short, since the path of a unix socket in one is. */
const PREFIX = '.pm-'
const NAME = /^\.pm-\w{6}$/
/** The file in each whose lock shows that its process is alive: also one in another container, and no other with its id. */
const LOCK = 'lock'

/**
 * Makes a temporary folder in another one, on the same disk as what is renamed from it. It goes with `remove`, or with the end of
 * the process; what processes left that were killed is removed before, whatever they were to write. Throws the system's error.
 */
export function makeTemporary(parent: string): Temporary {
  let made: Locked | null = null
  const remove = (): void => {
    if (made === null) return
    removeLockLast(made.folder)
    made.lock?.release()
    made = null
  }
  const forget = atEnd(remove) // first: a signal right after the folder is made is heard as well
  try {
    sweep(parent)
    made = makeLocked(parent)
  } catch (error) {
    forget()
    throw error
  }
  const { folder } = made
  return {
    folder,
    remove() {
      remove()
      forget() // last: until then a signal does not end the process before the folder is gone
    },
  }
}

interface Locked {
  readonly folder: string
  readonly lock: Lock | null
}

/** Another process that sweeps may remove a folder before it is locked: then one more is made. */
function makeLocked(parent: string): Locked {
  for (;;) {
    const folder = mkdtempSync(join(parent, PREFIX))
    const lock = tryLock(join(folder, LOCK))
    if (isPresent(join(folder, LOCK))) return { folder, lock }
    lock?.release()
  }
}

/** Without locks, as on some network disks, the folder is used all the same, and is not swept by others. */
function tryLock(path: string): Lock | null {
  try {
    return lockFile(path)
  } catch {
    return null
  }
}

/** Removes the temporary folders of processes that have ended. One that is in the making is made again. */
function sweep(parent: string): void {
  for (const name of namesIn(parent)) {
    if (!NAME.test(name)) continue
    const folder = join(parent, name)
    try {
      if (!isOwn(lstatSync(folder), 'isDirectory')) continue
      if (!isPresent(join(folder, LOCK))) {
        rmdirSync(folder) // an empty one alone
        continue
      }
      if (!isOwn(lstatSync(join(folder, LOCK)), 'isFile')) continue // opening a pipe would not end
      const lock = lockFile(join(folder, LOCK))
      if (lock === null) continue
      removeLockLast(folder)
      lock.release()
    } catch {
      // It is somebody else's, or another process has removed it just now.
    }
  }
}

/** Removes a folder. A process that is killed meanwhile leaves its lock, by which the next one knows that it may remove the rest. */
function removeLockLast(folder: string): void {
  for (const name of namesIn(folder)) {
    if (name !== LOCK) rmSync(join(folder, name), { recursive: true, force: true, maxRetries: 3 })
  }
  rmSync(folder, { recursive: true, force: true, maxRetries: 3 }) // a thread may still write
}

/** Reports whether this user made it, and it is no link: in a folder of everybody, somebody else may put anything under such a name. */
function isOwn(stats: Stats, kind: 'isDirectory' | 'isFile'): boolean {
  return stats[kind]() && stats.uid === (process.getuid?.() ?? stats.uid)
}

function namesIn(folder: string): string[] {
  try {
    return readdirSync(folder)
  } catch {
    return [] // making a folder in it says why
  }
}

/** What is to be done before this process ends, in whatever way but `kill -9`. */
const pending = new Set<() => void>()

/** Signals that end a process; a program that listens to one itself ends its work in good order. */
const ENDING: readonly NodeJS.Signals[] = ['SIGINT', 'SIGTERM', 'SIGHUP']

/**
 * Calls `clean` when the process ends before the returned function is called: by an exit, or by a signal that nothing else
 * listens to, which then ends the process as ever. In a worker thread it has no effect: signals reach the main thread alone.
 */
export function atEnd(clean: () => void): () => void {
  if (pending.size === 0) {
    process.on('exit', cleanAll)
    for (const signal of ENDING) process.on(signal, onSignal)
  }
  pending.add(clean)
  return () => {
    if (pending.delete(clean) && pending.size === 0) stopListening()
  }
}

function stopListening(): void {
  process.off('exit', cleanAll)
  for (const signal of ENDING) process.off(signal, onSignal)
}

function cleanAll(): void {
  for (const clean of pending) {
    try {
      clean()
    } catch {
      // The next run sweeps what is left.
    }
  }
  pending.clear()
}

function onSignal(signal: NodeJS.Signals): void {
  if (process.listenerCount(signal) > 1) return
  cleanAll()
  stopListening()
  process.kill(process.pid, signal)
}
