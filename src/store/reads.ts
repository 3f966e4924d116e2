import { closing } from '../base/closing.ts'
import type { SourceName } from '../base/domain/sources.ts'
import { type Db, openReader } from './database/open.ts'
import { namingFaults } from './database/faults.ts'
import { createDigestLines } from './catalog/digest-lines.ts'
import { createDocumentStoreReader } from './catalog/documents.ts'
import { createNewTagReader, createAnnouncedReader } from './catalog/tags.ts'
import { throwGone } from './read-probe.ts'
import { createLedgerReader } from './replication/ledger.ts'
import { createCatalogQuery, createOrderings } from './catalog/list-query.ts'
import { createCatalogAnswerReader } from './catalog/answers.ts'
import { createCatalogListReader } from './catalog/lists.ts'
import { createSignatureReader, createTrustReader } from './catalog/signatures.ts'
import { createDoubtReader } from './changes/doubts.ts'
import { createChangeReader } from './changes/log.ts'
import { createDocumentReader } from './feeds/documents.ts'
import { createKeyReader } from './keys.ts'
import { createOsvReader } from './osv/reads.ts'
import { createSupersededReader } from './osv/superseded.ts'
import { createDatesReader } from './dates/reads.ts'
import { createQuarantineReader } from './runs/quarantine.ts'
import { createRunReader } from './runs/runs.ts'
import { createRunScope } from './runs/run-scope.ts'
import { createSecretReader } from './secret.ts'
import { createSnapshotReader } from './runs/snapshots.ts'
import { createVexReader } from './catalog/vex.ts'
import { type ServedPin, createPin } from './pin.ts'

/** Creates all reads on one connection, by the module that owns the tables. */
export function createReads(db: Db) {
  return {
    osv: { ...createOsvReader(db), ...createSupersededReader(db) },
    dates: createDatesReader(db),
    feeds: createDocumentReader(db),
    catalog: {
      ...createCatalogListReader(db),
      ...createCatalogAnswerReader(db),
      ...createCatalogQuery(db),
      ...createAnnouncedReader(db),
      ...createNewTagReader(db),
      ...createDocumentStoreReader(db),
      ...createDigestLines(db),
      ...createSignatureReader(db),
      ...createTrustReader(db),
    },
    runs: { ...createRunReader(db), ...createRunScope(db) },
    snapshots: createSnapshotReader(db),
    quarantine: createQuarantineReader(db),
    changes: { ...createChangeReader(db), ...createDoubtReader(db) },
    keys: createKeyReader(db),
    secrets: createSecretReader(db),
    ledger: createLedgerReader(db),
    vex: createVexReader(db),
  }
}

export type Reads = ReturnType<typeof createReads>

/** Reports whether a source is stored that this mirror synced, at any time: not imports alone brought it. */
export function isOwnData({ snapshots, runs }: Pick<Reads, 'snapshots' | 'runs'>, source: SourceName): boolean {
  return snapshots.readSnapshot(source) !== null && !runs.isOnlyImported(source)
}

/**
 * Calls `work` with the reads of a data folder, on a connection that is closed after it. Null when there is no database,
 * or none that is migrated. Throws `storage`, `corrupt` or `schema`.
 */
export function withReads<T>(dataDir: string, work: (reads: Reads, db: Db) => T): T | null {
  const db = openReader(dataDir)
  return db === null ? null : closing(db, () => work(createReads(db), db))
}

/**
 * Opens reads for a thread of a daemon, which had a database when it began to serve. Throws `corrupt` where there is none to be read
 * any more.
 */
export function openThreadReads(dataDir: string): ShortReads {
  return openShortReads(dataDir) ?? namingFaults(dataDir, () => throwGone(dataDir))
}

/**
 * Opens one read-only connection for a thread beside the serving one; null if there is no database yet. Each call of
 * `during` sees one snapshot. No read transaction is open between two calls, unless they name the served snapshots.
 */
export function openShortReads(dataDir: string) {
  const db = openReader(dataDir)
  if (db === null) return null
  return namingFaults(dataDir, () => {
    db.pragma('temp_store = FILE')
    const version = db.prepare<[], number>('PRAGMA data_version').pluck()
    const orderings = createOrderings(db)
    const reads = createReads(db)
    const pin = createPin(db, reads)
    return {
      reads,
      vex: reads.vex,
      orderings,
      /**
       * Runs the work within one read transaction and returns its result. `served`: the stamp of the snapshots that it is to
       * see, where newer ones are kept back. Throws `not_ready` when they cannot be read here any more.
       */
      during<T>(work: () => T, served: string | null = null): T {
        try {
          if (served !== null) pin.follow(served)
          return namingFaults(dataDir, () => db.transaction(work).deferred())
        } catch (error) {
          orderings.forget()
          throw error
        }
      },
      /** Moves to the newest state, which is served from now on under this stamp. */
      repin: (served: string): void => namingFaults(dataDir, () => pin.move(served)),
      /** Returns a number that changes after each commit of another connection. */
      commits: (): number => version.get() ?? 0,
      close: (): void => void db.close(),
    }
  })
}

/** What one thread reads, each time from one snapshot. */
export type ShortReads = NonNullable<ReturnType<typeof openShortReads>>

/** The serving side of the database: reads of a pinned snapshot, and reads of the current state. */
export interface PinnedReads {
  /** Reads of one snapshot: a read transaction stays open, so index, records and archive are consistent. */
  readonly pinned: Reads
  /** Reads of the current state, for the run log and the status. */
  readonly live: Reads
  /** Moves the pin to the current state if any process has committed since. True when it moved. */
  refresh(): boolean
  /**
   * Pins the same snapshot again. After a checkpoint this releases the write-ahead log, so that the next commit restarts
   * it instead of extending it.
   */
  repin(): void
  /** Returns a number that changes after each commit of any process; takes microseconds, for caches of `live`. */
  commits(): number
  /** Where newer states are kept back: what is served. Missing: the newest state. */
  readonly servedPin?: ServedPin
  close(): void
}

/**
 * Opens the two read-only connections of the serving side. The pin guarantees that two statements see the same snapshot;
 * it is moved in microseconds and never waits for a writer (WAL).
 */
export function openPinnedReads(dataDir: string): PinnedReads | null {
  const pin = openReader(dataDir)
  const now = openReader(dataDir)
  if (pin === null || now === null) return null
  const close = (): void => {
    pin.close()
    now.close()
  }
  return namingFaults(dataDir, () => {
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
  const pinNow = (): void => {
    if (pin.inTransaction) pin.exec('COMMIT')
    pin.exec('BEGIN')
    take.get() // a deferred transaction fixes its snapshot at the first read
  }
  pinNow()
  return {
    pinned: createReads(pin),
    live: createReads(now),
    refresh() {
      const current = version.get()
      if (current === seen) return false
      pinNow()
      seen = current // only now: a move that failed is retried
      return true
    },
    repin() {
      if (version.get() !== seen) return // something new was committed: refresh will move the pin
      pinNow()
    },
    commits: () => version.get() ?? 0,
  }
}
