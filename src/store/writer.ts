import { type Db, openWriter } from './database/open.ts'
import { createDocumentStoreWriter } from './catalog/documents.ts'
import { createCatalogRepair } from './catalog/repair.ts'
import { createNewTagWriter, createAnnouncedReader } from './catalog/tags.ts'
import { createLedgerWriter } from './replication/ledger.ts'
import { createCarriedReader } from './replication/reader.ts'
import { createCarriedDocumentWriter } from './replication/documents.ts'
import { createCarriedWriter } from './replication/writer.ts'
import { createCatalogQuery } from './catalog/list-query.ts'
import { createCatalogAnswerWriter } from './catalog/answer-writes.ts'
import { createCatalogListWriter } from './catalog/list-writes.ts'
import { createDocumentWriter } from './feeds/documents.ts'
import { createKeyWriter } from './keys.ts'
import { createChangeTracker } from './changes/tracker.ts'
import { createOsvWriter, createStaging } from './osv/writes.ts'
import { createQuarantineWriter } from './runs/quarantine.ts'
import { createRunWriter } from './runs/runs.ts'
import { createSnapshotWriter } from './runs/snapshots.ts'

/**
 * The writing side of the database: one connection of one thread. Whatever writes does so through `exclusive`
 * or `transaction`, which queue: two sources may sync at the same time, but they commit one after the other.
 */
export function openWrites(dataDir: string) {
  const db = openWriter(dataDir)
  const queue = createQueue()
  const batch = createBatch(db)
  const tracker = createChangeTracker()
  return {
    ...createOsvWriter(db, tracker),
    ...createDocumentWriter(db, tracker),
    ...createSnapshotWriter(db, tracker),
    ...createRunWriter(db),
    ...createQuarantineWriter(db),
    ...createCatalogListWriter(db, tracker),
    ...createCatalogAnswerWriter(db, tracker),
    ...createCatalogQuery(db),
    ...createAnnouncedReader(db),
    ...createNewTagWriter(db),
    ...createDocumentStoreWriter(db),
    ...createCatalogRepair(db),
    ...createKeyWriter(db),
    ...createLedgerWriter(db),
    ...createCarriedWriter(db, tracker),
    ...createCarriedDocumentWriter(db),
    staging: createStaging(db),
    /** What readers see, as rows, on this connection. */
    carried: createCarriedReader(db),
    /** Runs single statements that must not fall into another source's open transaction. */
    exclusive: <T>(work: () => T): Promise<T> =>
      queue(() => {
        batch.end()
        return Promise.resolve(work())
      }),
    /**
     * The same for the many small writes of the one crawl that is running: what comes within some milliseconds shares a
     * transaction, but no more than `most` writes, so that a process that dies loses no more than it has requests in
     * flight. Everything else commits it first.
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
    /** Commits when `work` resolves with `commit: true`; rolls back when it says false or throws. */
    transaction: <T extends { commit: boolean }>(work: () => Promise<T>): Promise<T> =>
      queue(() => {
        batch.end()
        tracker.clear() // an earlier transaction's were taken, or rolled back
        return inTransaction(db, work)
      }),
    /**
     * Copies the write-ahead log into the database file, as far as no reader still needs it; never waits, never
     * throws: with a transaction open or the disk full it is left to the next time.
     */
    checkpoint: (): void => {
      if (db.inTransaction) return
      try {
        db.pragma('wal_checkpoint(PASSIVE)')
      } catch {
        // What is committed is safe in the log; whatever is wrong here meets the next run, which tells.
      }
    },
    /** Whether commits copy the write-ahead log into the database file, as usual; else somebody else must. */
    copyLogs: (by: boolean): void => {
      db.pragma(`wal_autocheckpoint = ${by ? LOG_PAGES : 0}`)
    },
    close: (): void => {
      batch.commit() // a failure is nobody's any more: the next crawl fetches what is lacking
      db.close()
    },
  }
}

export type Writes = ReturnType<typeof openWrites>

/** How long the log gets before a commit copies it: SQLite's own choice, 4 MB. */
const LOG_PAGES = 1000

/** How long gathered writes share a transaction at most: so long another process that wants to write waits. */
const BATCH_MS = 15

/**
 * A transaction that a crawl that is busy shares between answers. Between two of them lies a turn of the event loop in
 * which the database is free, so that another process that waits to write gets its chance. A commit that fails, as when
 * the disk is full, is told to whoever writes next.
 */
function createBatch(db: Db) {
  let timer: NodeJS.Timeout | null = null
  let rest: Promise<void> | null = null
  let writes = 0
  let failed: { error: unknown } | null = null
  const commit = (): void => {
    if (timer === null) return
    clearTimeout(timer)
    timer = null
    if (!db.inTransaction) return // a full disk may have rolled back already
    try {
      db.exec('COMMIT')
    } catch (error) {
      failed = { error }
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
  const tell = (): void => {
    const found = failed
    failed = null
    if (found !== null) throw found.error
  }
  return {
    commit,
    async begin(): Promise<void> {
      await rest
      tell()
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
      tell()
    },
  }
}

/** A full disk may have rolled back already. */
function rollBack(db: Db): void {
  if (db.inTransaction) db.exec('ROLLBACK')
}

async function inTransaction<T extends { commit: boolean }>(
  db: Db,
  work: () => Promise<T>,
): Promise<T> {
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

function createQueue(): <T>(work: () => Promise<T>) => Promise<T> {
  let last: Promise<unknown> = Promise.resolve()
  return (work) => {
    const turn = last.then(work, work)
    last = turn.catch(() => undefined) // the caller has the error; the queue goes on
    return turn
  }
}
