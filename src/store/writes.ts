import { type Db, openWriter } from './database/open.ts'
import { createDigestLines } from './catalog/digest-lines.ts'
import { createDocumentStoreWriter } from './catalog/documents.ts'
import { createCatalogRepair } from './catalog/repair.ts'
import { createSignatureWriter, createTrustWriter } from './catalog/signatures.ts'
import { createNewTagWriter, createAnnouncedReader } from './catalog/tags.ts'
import { createLedgerWriter } from './replication/ledger.ts'
import { createCarriedReader } from './replication/reader.ts'
import { createKnownStates } from './replication/known-states.ts'
import { createCarriedDocumentWriter } from './replication/documents.ts'
import { createCarriedWriter } from './replication/writer.ts'
import { createCatalogQuery } from './catalog/list-query.ts'
import { createCatalogAnswerWriter } from './catalog/answer-writes.ts'
import { createCatalogListWriter } from './catalog/list-writes.ts'
import { createDocumentWriter } from './feeds/documents.ts'
import { createKeyWriter } from './keys.ts'
import { createSecretReader } from './secret.ts'
import { createDoubtWriter } from './changes/doubts.ts'
import { createGuardLedger } from './changes/guard-ledger.ts'
import { createLogAdoption } from './changes/log-adoption.ts'
import { createChangeWriter } from './changes/log-writes.ts'
import { type ChangeTracker, createChangeTracker } from './changes/tracker.ts'
import { createSupersededReader } from './osv/superseded.ts'
import { createOsvWriter, createStaging } from './osv/writes.ts'
import { createDatesWriter } from './dates/writes.ts'
import { createVexReader } from './catalog/vex.ts'
import { createQuarantineWriter } from './runs/quarantine.ts'
import { createRunWriter } from './runs/runs.ts'
import { createRunScope } from './runs/run-scope.ts'
import { createSnapshotWriter } from './runs/snapshots.ts'

/**
 * Opens the writing side of the database: one connection of one thread. All writes go through `exclusive` or
 * `transaction`, which queue: two sources may sync at the same time, but they commit one after the other.
 */
export function openWrites(dataDir: string) {
  const db = openWriter(dataDir)
  const queue = createQueue()
  const batch = createBatch(db)
  const tracker = createChangeTracker()
  /** Commits when `work` resolves with `commit: true`; rolls back when it resolves with false or throws. */
  const transaction = <T extends { commit: boolean }>(work: () => Promise<T>): Promise<T> =>
    queue(() => {
      batch.end()
      tracker.clear() // those of an earlier transaction were logged, or rolled back
      return inTransaction(db, work)
    })
  return {
    ...createTableWriters(db, tracker),
    /** Runs single statements that must not be part of another source's open transaction. */
    exclusive: <T>(work: () => T): Promise<T> =>
      queue(() => {
        batch.end()
        return Promise.resolve(work())
      }),
    /**
     * Runs one of many small writes of a crawl. Writes within some milliseconds share a transaction, but at most `most`,
     * so that a process that dies loses no more than these. All other writes commit it first.
     */
    gathered: <T>(most: number, work: () => T): Promise<T> =>
      queue(async () => {
        await batch.begin()
        try {
          return work()
        } finally {
          batch.written(most)
        }
      }),
    transaction,
    /** Runs reads that see one state, and wait for no other process. */
    reading: <T>(work: () => T): Promise<T> =>
      queue(() => {
        batch.end()
        return Promise.resolve(db.transaction(work).deferred())
      }),
    /** Runs a transaction that writes many rows in the order of their keys: few pages are cached meanwhile, and none afterwards. */
    fill: <T extends { commit: boolean }>(work: () => Promise<T>): Promise<T> =>
      transaction(() => withFewPages(db, work)).finally(() => db.pragma('shrink_memory')),
    /**
     * Copies the write-ahead log into the database file, as far as no reader needs it; never waits, never throws: with
     * an open transaction or a full disk it is left to the next call.
     */
    checkpoint: (): void => {
      if (db.inTransaction) return
      try {
        db.pragma('wal_checkpoint(PASSIVE)')
      } catch {
        // Committed data is safe in the log; the next run meets and reports the fault.
      }
    },
    /** Sets whether commits copy the write-ahead log into the database file; if not, call `checkpoint`. */
    copyLogs: (by: boolean): void => {
      db.pragma(`wal_autocheckpoint = ${by ? LOG_PAGES : 0}`)
    },
    close: (): void => {
      batch.commit() // a failure is not reported: the next crawl fetches what is missing
      db.close()
    },
  }
}

/** Creates the reads and writes of each table, by the module that owns it. */
export function createTableWriters(db: Db, tracker: ChangeTracker) {
  const changes = createChangeWriter(db)
  const carried = createCarriedReader(db)
  return {
    osv: {
      ...createOsvWriter(db, tracker),
      ...createSupersededReader(db),
      staging: createStaging(db),
    },
    feeds: createDocumentWriter(db, tracker),
    catalog: {
      ...createCatalogListWriter(db, tracker),
      ...createCatalogAnswerWriter(db, tracker),
      ...createCatalogQuery(db),
      ...createAnnouncedReader(db),
      ...createNewTagWriter(db),
      ...createDocumentStoreWriter(db),
      ...createDigestLines(db),
      ...createCatalogRepair(db),
      ...createSignatureWriter(db),
      ...createTrustWriter(db),
    },
    dates: createDatesWriter(db),
    runs: { ...createRunWriter(db), ...createRunScope(db) },
    snapshots: createSnapshotWriter(db, tracker, changes),
    quarantine: createQuarantineWriter(db),
    changes: { ...changes, ...createLogAdoption(db), ...createDoubtWriter(db) },
    keys: createKeyWriter(db),
    secrets: createSecretReader(db),
    ledger: createLedgerWriter(db),
    guardLedger: createGuardLedger(db),
    vex: createVexReader(db),
    /** Everything that readers see, as the rows of bundles, read and written on this connection. */
    carried: {
      ...carried,
      known: createKnownStates(db, carried),
      ...createCarriedWriter(db, tracker),
      ...createCarriedDocumentWriter(db),
    },
  }
}

export type Writes = ReturnType<typeof openWrites>

/** Pages of the write-ahead log after which a commit copies it: SQLite's default, 4 MB. */
const LOG_PAGES = 1000

/**
 * Longest time that gathered writes share a transaction, milliseconds: other processes that want to write wait as long.
 */
const BATCH_MS = 100

/**
 * Creates the transaction that a crawl's gathered writes share. After each commit the database is free for one iteration
 * of the event loop, so that another process that waits can write. A failed commit, as on a full disk, is thrown at each
 * further gathered write, until another kind of write ends the batch.
 */
function createBatch(db: Db) {
  let timer: NodeJS.Timeout | null = null
  let rest: Promise<void> | null = null
  let writes = 0
  let failed: { error: unknown; isThrown: boolean } | null = null
  const commit = (): void => {
    if (timer === null) return
    clearTimeout(timer)
    timer = null
    if (!db.inTransaction) return // a full disk may have rolled back already
    try {
      db.exec('COMMIT')
    } catch (error) {
      failed = { error, isThrown: false }
      rollBack(db)
    }
  }
  const commitAndRest = (): void => {
    commit()
    rest = new Promise((resolve) =>
      setImmediate(() => {
        rest = null
        resolve()
      }),
    )
  }
  return {
    commit,
    async begin(): Promise<void> {
      await rest
      if (failed !== null) {
        failed.isThrown = true // to each of them: an answer must not be stored whose document was lost with the batch
        throw failed.error
      }
      if (timer !== null && db.inTransaction) return
      commit()
      db.exec('BEGIN IMMEDIATE')
      timer = setTimeout(commitAndRest, BATCH_MS)
      writes = 0
    },
    written(most: number): void {
      if (++writes >= most) commitAndRest()
    },
    end(): void {
      commit()
      const found = failed
      failed = null
      if (found?.isThrown === false) throw found.error
    },
  }
}

/** Rolls back; a full disk may have done so already. */
function rollBack(db: Db): void {
  if (db.inTransaction) db.exec('ROLLBACK')
}

async function inTransaction<T extends { commit: boolean }>(db: Db, work: () => Promise<T>): Promise<T> {
  db.exec('BEGIN IMMEDIATE')
  try {
    const result = await work()
    db.exec(result.commit ? 'COMMIT' : 'ROLLBACK')
    return result
  } catch (error) {
    rollBack(db)
    throw error
  }
}

async function withFewPages<T>(db: Db, work: () => Promise<T>): Promise<T> {
  const usual = Number(db.pragma('cache_size', { simple: true }))
  db.pragma(`cache_size = ${usual / 2}`)
  try {
    return await work()
  } finally {
    db.pragma(`cache_size = ${usual}`)
  }
}

function createQueue(): <T>(work: () => Promise<T>) => Promise<T> {
  let last: Promise<unknown> = Promise.resolve()
  return (work) => {
    const result = last.then(work, work)
    last = result.catch(() => undefined) // the caller gets the error; the queue continues
    return result
  }
}
