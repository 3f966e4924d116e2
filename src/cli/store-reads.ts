import type { Config } from '../config/schema.ts'
import { closing } from '../base/closing.ts'
import { unsyncedSources } from '../base/domain/sources.ts'
import { whyUnread } from '../store/database/unread.ts'
import { type Db, openReader } from '../store/database/open.ts'
import { type Reads, createReads, isOwnData, withReads } from '../store/reads.ts'

/** Does the same as `withReads`; throws `not_ready` where that returns null: `none`, or that the database is to be migrated. */
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
