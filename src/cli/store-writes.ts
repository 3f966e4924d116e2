import { type Writes, openWrites } from '../store/writer.ts'
import { closing } from './store-access.ts'

/** Calls `work` with the writes of a data folder, in the lock of its writers, and closes them after it. */
export function withWrites<T>(dataDir: string, work: (store: Writes) => T): Promise<T> {
  const store = openWrites(dataDir)
  return closing(store, () => store.exclusive(() => work(store)))
}
