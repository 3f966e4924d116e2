import { randomBytes } from 'node:crypto'
import { existsSync, readFileSync, writeFileSync } from 'node:fs'
import { join } from 'node:path'
import Database from 'better-sqlite3'
import { MirrorError, systemCode } from '../../core/errors.ts'
import { guarded, makeFile } from './open.ts'
import { PRIVATE_FILE, makeFolder } from '../../core/files.ts'

type LockName = 'serve' | 'sync' | 'secrets' | 'export' | 'views'

/** A lock that is held; releasing it twice does nothing more. */
export interface Lock {
  release(): void
}

/**
 * Takes a lock on the data folder. It is a lock of the operating system, held through SQLite, so it ends
 * with the process however that ends: there is no stale lock file to clean up. Throws `locked` with the
 * holder's process id when another holds it.
 */
export function acquireLock(dataDir: string, name: LockName): Lock {
  const path = join(dataDir, `${name}.lock`)
  const db = guarded(dataDir, () => {
    makeFolder(dataDir)
    makeFile(path)
    return new Database(path, { timeout: 0 })
  })
  try {
    db.exec('BEGIN EXCLUSIVE')
    writeFileSync(`${path}.pid`, String(process.pid), { mode: PRIVATE_FILE })
  } catch (error) {
    db.close()
    if (systemCode(error) !== 'SQLITE_BUSY') return guarded(dataDir, () => rethrow(error))
    throw new MirrorError('locked', `${PURPOSE[name]} (${holder(path)}): ${dataDir}`)
  }
  return {
    release() {
      if (db.open) db.close()
    },
  }
}

/** Whether another process holds a lock; looks without taking it, and without making anything. */
export function isLocked(dataDir: string, name: LockName): boolean {
  const path = join(dataDir, `${name}.lock`)
  if (!existsSync(path)) return false
  const db = guarded(dataDir, () => new Database(path, { readonly: true, timeout: 0 }))
  try {
    db.prepare('SELECT 1 FROM sqlite_master').get()
    return false
  } catch (error) {
    if (systemCode(error) !== 'SQLITE_BUSY') return guarded(dataDir, () => rethrow(error))
    return true
  } finally {
    db.close()
  }
}

const INSTANCE_FILE = 'serve.instance'

/** Gives the daemon that holds `serve` an id of its own, 16 hex digits, and leaves it in its data folder. */
export function announceInstance(dataDir: string): string {
  const instance = randomBytes(8).toString('hex')
  announceAddress(dataDir, instance, { port: 0 })
  return instance
}

/** Adds the port that the daemon listens on; gives back where that is. */
export function announceAddress<At extends { port: number }>(
  dataDir: string,
  instance: string,
  at: At,
): At {
  guarded(dataDir, () =>
    writeFileSync(join(dataDir, INSTANCE_FILE), `${instance} ${at.port}\n`, { mode: PRIVATE_FILE }),
  )
  return at
}

/** The daemon that serves this very folder now, and its port; null when none does. A copy of the folder has no daemon. */
export function servingDaemon(dataDir: string): { instance: string; port: number } | null {
  if (!isLocked(dataDir, 'serve')) return null
  try {
    const [instance = '', port = ''] = readFileSync(join(dataDir, INSTANCE_FILE), 'utf8').split(
      /\s/,
    )
    return { instance, port: Number(port) }
  } catch {
    return null // it is starting, or of an earlier version
  }
}

const PURPOSE: Record<LockName, string> = {
  serve: 'another Patchmirror already serves this data folder',
  sync: 'another Patchmirror is writing to this data folder just now',
  views: 'another Patchmirror is making the views of this data folder just now',
  secrets: 'another command is changing the webhook secrets just now',
  export: 'another Patchmirror exports from this data folder just now',
}

function holder(path: string): string {
  try {
    return `process ${readFileSync(`${path}.pid`, 'utf8')}`
  } catch {
    return 'process unknown'
  }
}

function rethrow(error: unknown): never {
  throw error
}
