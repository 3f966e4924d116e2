import { type Db, guarded, openReader } from './database/open.ts'
import { createDocumentStoreReader } from './catalog/documents.ts'
import { createNewTagReader, createAnnouncedReader } from './catalog/tags.ts'
import { createLedgerReader } from './replication/ledger.ts'
import { createCatalogQuery, createOrderings } from './catalog/list-query.ts'
import { createCatalogAnswerReader } from './catalog/answers.ts'
import { createCatalogListReader } from './catalog/lists.ts'
import { createChangeReader } from './changes/log.ts'
import { createDocumentReader } from './feeds/documents.ts'
import { createKeyReader } from './keys.ts'
import { createOsvReader } from './osv/reads.ts'
import { createQuarantineReader } from './runs/quarantine.ts'
import { createRunReader } from './runs/runs.ts'
import { createSecretReader } from './secret.ts'
import { createSnapshotReader } from './runs/snapshots.ts'

/** Everything that can be read, on one connection. */
export function createReads(db: Db) {
  return {
    ...createOsvReader(db),
    ...createDocumentReader(db),
    ...createSnapshotReader(db),
    ...createRunReader(db),
    ...createQuarantineReader(db),
    ...createCatalogListReader(db),
    ...createCatalogAnswerReader(db),
    ...createCatalogQuery(db),
    ...createAnnouncedReader(db),
    ...createNewTagReader(db),
    ...createDocumentStoreReader(db),
    ...createKeyReader(db),
    ...createSecretReader(db),
    ...createChangeReader(db),
    ...createLedgerReader(db),
  }
}

export type Reads = ReturnType<typeof createReads>

/**
 * Opens one read-only connection whose work sees one moment each, and which holds none in between; null when there is no
 * database yet. For a thread beside the serving one.
 */
export function openShortReads(dataDir: string) {
  const db = openReader(dataDir)
  if (db === null) return null
  return guarded(dataDir, () => {
    db.pragma('temp_store = FILE')
    const version = db.prepare<[], number>('PRAGMA data_version').pluck()
    const moment = db.transaction((work: () => void) => work())
    const orderings = createOrderings(db)
    return {
      reads: createReads(db),
      orderings,
      /** Does the work with one moment of the store. */
      during(work: () => void): void {
        try {
          guarded(dataDir, () => moment.deferred(work))
        } catch (error) {
          orderings.forget()
          throw error
        }
      },
      /** Another number after each commit of another connection. */
      commits: (): number => version.get() ?? 0,
    }
  })
}

/** The serving side of the database: a pin on one moment, and a look at now. */
export interface PinnedReads {
  /** Reads of one moment: a read transaction is held open, so index, records and archive belong together. */
  readonly pinned: Reads
  /** Reads of now, for the run log and the status. */
  readonly live: Reads
  /** Moves the pin to now if anything was committed since, by this process or another. True when it moved. */
  refresh(): boolean
  /**
   * Takes the same moment anew. After a checkpoint this lets go of the write-ahead log, so that the next commit
   * begins it from the start instead of making it longer.
   */
  repin(): void
  /** Another number after each commit, of this process or another: costs microseconds to ask, for caches of `live`. */
  commits(): number
  close(): void
}

/**
 * Opens the two read-only connections of the serving side. The pin is what makes "only whole snapshots" hold
 * between two statements; it is moved in microseconds and never waits for a writer (WAL).
 */
export function openPinnedReads(dataDir: string): PinnedReads | null {
  const pin = openReader(dataDir)
  const now = openReader(dataDir)
  if (pin === null || now === null) return null
  const close = (): void => {
    pin.close()
    now.close()
  }
  return guarded(dataDir, () => {
    try {
      return { ...pinReads(pin, now), close }
    } catch (error) {
      close()
      throw error
    }
  })
}

function pinReads(pin: Db, now: Db): Omit<PinnedReads, 'close'> {
  const version = now.prepare<[], number>('PRAGMA data_version').pluck()
  const take = pin.prepare('SELECT 1 FROM snapshot LIMIT 1')
  let seen = version.get()
  const hold = (): void => {
    if (pin.inTransaction) pin.exec('COMMIT')
    pin.exec('BEGIN')
    take.get() // a deferred transaction takes its moment at the first read
  }
  hold()
  return {
    pinned: createReads(pin),
    live: createReads(now),
    refresh() {
      const current = version.get()
      if (current === seen) return false
      hold()
      seen = current // only now: a move that failed is tried again
      return true
    },
    repin() {
      if (version.get() !== seen) return // something new was committed: refresh will move the pin
      hold()
    },
    commits: () => version.get() ?? 0,
  }
}
