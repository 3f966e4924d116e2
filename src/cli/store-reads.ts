import type { Config } from '../config/schema.ts'
import { unsyncedSources } from '../base/domain/sources.ts'
import { whyUnread } from '../store/database/unread.ts'
import { type Db, openReader } from '../store/database/open.ts'
import { type Reads, createReads, isOwnData } from '../store/reads.ts'

/** Calls `work` and closes `store` after it, also after a promise of it or an error. */
export function closing<T>(store: { close(): void }, work: () => T): T {
  let isPending = false
  try {
    const result = work()
    if (!(result instanceof Promise)) return result
    isPending = true
    return result.finally(() => store.close()) as T
  } finally {
    if (!isPending) store.close()
  }
}

/**
 * Calls `work` with the reads of a data folder, on a connection that is closed after it. Null when there is no database,
 * or none that is migrated. Throws `storage`, `corrupt` or `schema`.
 */
export function withReads<T>(dataDir: string, work: (reads: Reads, db: Db) => T): T | null {
  const db = openReader(dataDir)
  return db === null ? null : closing(db, () => work(createReads(db), db))
}

/** Does the same; throws `not_ready` where `withReads` returns null: `none`, or that the database is to be migrated. */
export function withStoredReads<T>(dataDir: string, none: string, work: (reads: Reads, db: Db) => T): T {
  const db = openReader(dataDir)
  if (db === null) throw whyUnread(dataDir, none)
  return closing(db, () => work(createReads(db), db))
}

/** Returns a sentence for each source that is stored and, by these settings, not synced any more; none where nothing is stored. */
export function unsyncedHere(config: Config): string[] {
  const here = withReads(config.data.dir, (reads) => unsyncedSources(config, (source) => isOwnData(reads, source)))
  return here ?? []
}
