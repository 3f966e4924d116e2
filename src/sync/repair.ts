import { rebuildLostArchive } from '../archive/build.ts'
import { MirrorError, messageOf } from '../core/errors.ts'
import { acquireLock } from '../store/database/lock.ts'
import type { Writes } from '../store/writer.ts'

/**
 * Closes the runs that a killed process left open and rebuilds a missing derived archive. Does nothing while another
 * process syncs, because its runs look the same. Returns why an archive could not be rebuilt, or null.
 */
export async function repair(store: Writes, dataDir: string): Promise<string | null> {
  try {
    const lock = acquireLock(dataDir, 'sync')
    try {
      store.runs.closeOrphanRuns(Date.now())
      await rebuildLostArchive(store.osv, dataDir)
    } finally {
      lock.release()
    }
  } catch (error) {
    const busy = error instanceof MirrorError && error.code === 'locked'
    if (!busy) return messageOf(error)
  }
  return null
}
