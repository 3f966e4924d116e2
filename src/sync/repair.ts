import { rebuildLostArchive } from '../archive/build.ts'
import { MirrorError, messageOf } from '../base/errors.ts'
import { nameStorageError } from '../store/database/faults.ts'
import { acquireLock } from '../store/database/lock.ts'
import type { Config } from '../config/schema.ts'
import { signatureMode } from '../base/domain/artifacts/signature.ts'
import type { Writes } from '../store/writes.ts'

/**
 * Closes the runs that a killed process left open, rebuilds a missing derived archive, and verifies the signatures of what other
 * settings or no one verified, as after an import. Does nothing while another process syncs, because its runs look the same.
 * Returns why something of it failed, or null.
 */
export async function repair(
  store: Writes,
  { data, catalog }: Pick<Config, 'data' | 'catalog'>,
): Promise<string | null> {
  const dataDir = data.dir
  try {
    const lock = acquireLock(dataDir, 'sync')
    try {
      store.runs.closeOrphanRuns(Date.now())
      await rebuildLostArchive(store.osv, dataDir)
      await verifyArrived(store, catalog)
    } finally {
      lock.release()
    }
  } catch (error) {
    const busy = error instanceof MirrorError && error.code === 'locked'
    if (!busy) return messageOf(nameStorageError(error, dataDir))
  }
  return null
}

/** The modules of the verification are loaded where there is something to verify, or to forget. */
async function verifyArrived(store: Writes, settings: Config['catalog']): Promise<void> {
  if (signatureMode(settings) === 'off' && store.catalog.countSignatures() === null) return
  const { settleSignatures } = await import('./catalog/signatures.ts')
  await settleSignatures(store, settings)
}
