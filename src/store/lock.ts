import { readFileSync, writeFileSync } from 'node:fs'
import { join } from 'node:path'
import Database from 'better-sqlite3'
import { MirrorError, systemCode } from '../errors.ts'
import { guarded } from './database.ts'
import { makeFolder } from './folder.ts'

export type LockName = 'serve' | 'sync' | 'secrets' | 'export' | 'views'

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
    return new Database(path, { timeout: 0 })
  })
  try {
    db.exec('BEGIN EXCLUSIVE')
    writeFileSync(`${path}.pid`, String(process.pid))
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
