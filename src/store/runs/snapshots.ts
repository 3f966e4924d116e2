import type { SourceName } from '../../domain/sources.ts'
import type { createChangeWriter } from '../changes/log-writes.ts'
import type { ChangeTracker } from '../changes/tracker.ts'
import type { Db } from '../database/open.ts'

/** The state of one source that readers see, published in one transaction. */
interface Snapshot {
  source: SourceName
  /** Digest of everything it serves, hex; equal id means equal bytes on every path, on any mirror. */
  id: string
  /** Counts up from 1 on this mirror. */
  sequence: number
  runId: number
  /** Unix milliseconds. */
  publishedAt: number
  /** Upstream's date of its data, Unix milliseconds; later runs may confirm it again. */
  asOf: number
  records: number
  whole: boolean
  /** The settings of the scope that it was made with, JSON (`parseScopeText`); null: everything is in scope. */
  scope: string | null
}

/** A snapshot to publish. */
export type PublishedSnapshot = Omit<Snapshot, 'sequence' | 'scope'> &
  Partial<Pick<Snapshot, 'scope'>>

interface Row {
  source: SourceName
  id: string
  sequence: number
  runId: number
  publishedAt: number
  asOf: number
  records: number
  whole: number
  scope: string | null
}

/** Creates reads of the published snapshots; usable on any connection. */
export function createSnapshotReader(db: Db) {
  const read = db.prepare<[string], Row>(
    `SELECT source, id, sequence, run_id AS runId, published_at AS publishedAt, as_of AS asOf, records, whole,
       scope
     FROM snapshot WHERE source = ?`,
  )
  return {
    readSnapshot(source: SourceName): Snapshot | null {
      const row = read.get(source)
      return row === undefined ? null : { ...row, whole: row.whole === 1 }
    },
  }
}

/**
 * Creates the publication of snapshots; the sequence counts up only when the snapshot's id changes. The change log then
 * gets a row with the changes recorded since the transaction began.
 */
export function createSnapshotWriter(
  db: Db,
  tracker: ChangeTracker,
  changes: Pick<ReturnType<typeof createChangeWriter>, 'logSnapshot'>,
) {
  const write = db.prepare(
    `INSERT INTO snapshot (source, id, sequence, run_id, published_at, as_of, records, whole, scope)
     VALUES (@source, @id, 1, @runId, @publishedAt, @asOf, @records, @whole, @scope)
     ON CONFLICT (source) DO UPDATE SET id = @id, sequence = sequence + (id <> @id), run_id = @runId,
       published_at = @publishedAt, as_of = @asOf, records = @records, whole = @whole, scope = @scope`,
  )
  const reader = createSnapshotReader(db)
  return {
    ...reader,
    replaceSnapshot(snapshot: PublishedSnapshot): void {
      const { source, id, publishedAt, asOf, records, whole } = snapshot
      const before = reader.readSnapshot(source)
      write.run({ scope: null, ...snapshot, whole: whole ? 1 : 0 })
      const change = tracker.take()
      if (before?.id === id) return
      const sequence = (before?.sequence ?? 0) + 1
      const previous = before?.id ?? null
      const logged = { source, snapshot: id, previous, sequence, publishedAt, asOf, records }
      changes.logSnapshot(logged, change)
    },
  }
}
