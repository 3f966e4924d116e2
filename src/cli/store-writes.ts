import { MirrorError, systemCode } from '../base/errors.ts'
import { nameStorageError } from '../store/database/faults.ts'
import { type Writes, openWrites } from '../store/writes.ts'
import { closing } from '../base/closing.ts'

/**
 * Calls `work` with the writes of a data folder, among those of this process one after the other, and closes them after it. Throws
 * `locked` where something has written for longer than a write waits, `storage` and `corrupt`.
 */
export async function withWrites<T>(dataDir: string, work: (store: Writes) => T): Promise<T> {
  try {
    const store = openWrites(dataDir)
    return await closing(store, () => store.exclusive(() => work(store)))
  } catch (error) {
    if (systemCode(error)?.startsWith('SQLITE_BUSY') !== true) throw nameStorageError(error, dataDir)
    const message =
      'what writes to the database did not end within some seconds, such as a sync that publishes: try again'
    throw new MirrorError('locked', message, { cause: error })
  }
}
