import type { SourceName } from '../../base/domain/sources.ts'
import type { createChangeWriter } from '../changes/log-writes.ts'
import type { Change, ChangeTracker } from '../changes/tracker.ts'
import type { Db } from '../database/open.ts'
import { createContentDigester } from '../replication/content.ts'

/** The state of one source that readers see, published in one transaction. */
interface Snapshot {
  source: SourceName
  /** Digest of everything it serves, hex; equal id means equal bytes on every path, on any mirror. */
  id: string
  /** Counts up from 1 on this mirror. */
  sequence: number
  runId: number
  /** When its id was published first, Unix milliseconds: a run that publishes equal content again does not move it. */
  publishedAt: number
  /** Upstream's date of its data, Unix milliseconds; later runs may confirm it again. */
  asOf: number
  records: number
  whole: boolean
  /** The settings of the scope that it was made with, JSON (`parseScopeText`); null: everything is in scope. */
  scope: string | null
  /** Equal for equal content on any mirror, hex; null: unknown. */
  contentDigest: string | null
}

/** A snapshot to publish. */
export type PublishedSnapshot = Omit<Snapshot, 'sequence' | 'scope' | 'contentDigest'> &
  Partial<Pick<Snapshot, 'scope'>>

interface Row extends Omit<Snapshot, 'whole'> {
  whole: number
}

/** Creates reads of the published snapshots; usable on any connection. */
export function createSnapshotReader(db: Db) {
  const read = db.prepare<[string], Row>(
    `SELECT source, id, sequence, run_id AS runId, published_at AS publishedAt, as_of AS asOf, records, whole,
       scope, content_digest AS contentDigest
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
 * Creates the look-up of what the next snapshot of a source follows. Where nothing is stored, that is the newest row of a log that
 * a repair kept: the log leads on, and what changed since is not known.
 */
function createPlaces(changes: Pick<ReturnType<typeof createChangeWriter>, 'readLatestLogged'>) {
  return (source: SourceName, before: Snapshot | null) => {
    if (before !== null) return { previous: before.id, sequence: before.sequence + 1 }
    const last = changes.readLatestLogged(source)
    return { previous: last?.snapshot ?? null, sequence: (last?.sequence ?? 0) + 1 }
  }
}

/**
 * Creates the publication of snapshots; the sequence counts up only when the snapshot's id changes. The change log then
 * gets a row with the changes recorded since the transaction began, and the snapshot its content digest: publish it last.
 */
export function createSnapshotWriter(
  db: Db,
  tracker: ChangeTracker,
  changes: Pick<ReturnType<typeof createChangeWriter>, 'logSnapshot' | 'dropUnpublished' | 'readLatestLogged'>,
) {
  const write = db.prepare(
    `INSERT INTO snapshot (source, id, sequence, run_id, published_at, as_of, records, whole, scope, content_digest)
     VALUES (@source, @id, 1, @runId, @publishedAt, @asOf, @records, @whole, @scope, @contentDigest)
     ON CONFLICT (source) DO UPDATE SET id = @id, sequence = sequence + (id <> @id), run_id = @runId,
       published_at = iif(id = @id, published_at, @publishedAt), as_of = @asOf, records = @records, whole = @whole, scope = @scope, content_digest = @contentDigest`,
  )
  const number = db.prepare('UPDATE snapshot SET sequence = ? WHERE source = ?')
  // That of lost dates is deleted once they are noted.
  const endRepair = db.prepare('DELETE FROM repair_left WHERE source = ? AND undated = 0')
  const digestContent = createContentDigester(db)
  const reader = createSnapshotReader(db)
  const placeOf = createPlaces(changes)
  return {
    ...reader,
    /** Returns what changed since the transaction began. */
    replaceSnapshot(snapshot: PublishedSnapshot): Change {
      const { source, id, publishedAt, asOf, records, whole } = snapshot
      const before = reader.readSnapshot(source)
      const known = before?.id === id ? before.contentDigest : null // an equal id is equal content
      const contentDigest = known ?? digestContent(source)
      write.run({ scope: null, ...snapshot, whole: whole ? 1 : 0, contentDigest })
      endRepair.run(source)
      const change = tracker.take()
      const { previous, sequence } = placeOf(source, before)
      const isContinued = before === null && previous !== null
      if (isContinued) number.run(previous === id ? sequence - 1 : sequence, source)
      if (previous === id) {
        if (source === 'osv') changes.dropUnpublished() // written again, as by an import: no version was superseded
        return change
      }
      const logged = { source, snapshot: id, previous, sequence, publishedAt, asOf, records }
      changes.logSnapshot(logged, isContinued ? { ...change, complete: false } : change)
      return change
    },
  }
}
