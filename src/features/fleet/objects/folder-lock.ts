import { dirname } from 'node:path'
import { setTimeout as sleep } from 'node:timers/promises'
import { systemCode } from '../../../base/errors.ts'
import { probeLocks } from '../../../store/lock-effect.ts'
import { type Db, Database } from '../../../store/database/sqlite.ts'
import { FleetError } from './object-store.ts'

/** Longest wait for the lock, milliseconds. A process that has it compares one small file and renames another. */
const LONGEST_WAIT_MS = 10_000
/** Time between two attempts, milliseconds, at most. */
const RETRY_MS = 10

/**
 * Creates a lock on a file. It is a lock of the operating system, taken through SQLite, so it ends with the process: a process
 * that is killed leaves no lock, and one that is stopped keeps it.
 */
export function createFolderLock(path: string) {
  let db: Db | null = null
  let last: Promise<unknown> = Promise.resolve()
  const take = async (): Promise<Db> => {
    const own = (db ??= new Database(path, { timeout: 0 }))
    const until = performance.now() + LONGEST_WAIT_MS
    for (;;) {
      try {
        own.exec('BEGIN EXCLUSIVE')
        return own
      } catch (error) {
        if (systemCode(error) !== 'SQLITE_BUSY') throw error
      }
      if (performance.now() <= until) {
        await sleep(1 + Math.random() * RETRY_MS)
        continue
      }
      const folder = dirname(path)
      const why =
        probeLocks(folder) === 'refused'
          ? `locks do not work in ${folder}: its file system refuses every lock`
          : `${path} is locked by another process for too long`
      throw new FleetError('refused', `fleet.url: ${why}`)
    }
  }
  return {
    /** Runs an action while no other process, and no other action of this one, has the lock. */
    run<T>(action: () => Promise<T> | T): Promise<T> {
      const result = last.then(async () => {
        const own = await take()
        try {
          return await action()
        } finally {
          own.exec('ROLLBACK')
        }
      })
      last = result.catch(() => undefined)
      return result
    },
    close(): void {
      void last.then(() => {
        db?.close()
        db = null
      })
    },
  }
}
