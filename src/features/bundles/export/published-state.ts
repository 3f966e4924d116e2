import { SOURCES, type SourceName } from '../../../base/domain/sources.ts'
import { openReader } from '../../../store/database/open.ts'
import { contentDigestOf } from '../../../store/replication/content.ts'
import { type Reads, createReads } from '../../../store/reads.ts'

/** What a mirror publishes now, and which states it exported. */
export interface PublishedState {
  /** The identity of the mirror in its bundles. */
  mirror: string
  /** The sequence of the exported state with the published snapshots; null: not exported yet. */
  current: number | null
  /** The sequence of the mirror's last export; 0: none. */
  last: number
  /** Upstream's date of each published source, Unix milliseconds. */
  asOf: Partial<Record<SourceName, number>>
  /** When what is withheld last changed, Unix milliseconds; 0: never. */
  withheldAt: number
  /** The snapshot of each published source. */
  snapshots: Partial<Record<SourceName, string>>
  /** Digest of the decoded content of all sources, hex; null: one was not computed. */
  contentDigest: string | null
  /** The states on which a delta can build: their digests by sequence. */
  remembered: ReadonlyMap<number, string>
  /** The sequences of all exported states by their digests, the newest of each. */
  exported: ReadonlyMap<string, number>
}

/** Reads what a mirror publishes; null: nothing yet. */
export function readPublishedState(dataDir: string): PublishedState | null {
  const db = openReader(dataDir)
  if (db === null) return null
  try {
    const reads = createReads(db)
    if (SOURCES.every((source) => reads.snapshots.readSnapshot(source) === null)) return null
    const exports = reads.ledger.listExports()
    const last = exports.at(-1)
    const remembered = exports.filter(({ kept }) => kept)
    const current = last !== undefined && isPublished(reads, last.sources) ? last.sequence : null
    const mirror = reads.ledger.readIdentity()
    const known = {
      last: last?.sequence ?? 0,
      ...describeSources(reads),
      withheldAt: reads.quarantine.readLastMoved() ?? 0,
      contentDigest: contentDigestOf(reads.snapshots).digest,
    }
    return {
      mirror,
      current,
      ...known,
      remembered: new Map(remembered.map(({ sequence, digest }) => [sequence, digest])),
      exported: new Map(exports.map(({ sequence, digest }) => [digest, sequence])),
    }
  } finally {
    db.close()
  }
}

function describeSources(reads: Reads): Pick<PublishedState, 'asOf' | 'snapshots'> {
  const asOf: PublishedState['asOf'] = {}
  const snapshots: PublishedState['snapshots'] = {}
  for (const source of SOURCES) {
    const snapshot = reads.snapshots.readSnapshot(source)
    if (snapshot === null) continue
    asOf[source] = reads.runs.readAsOf(source, snapshot)
    snapshots[source] = snapshot.id
  }
  return { asOf, snapshots }
}

function isPublished(reads: Reads, exported: Partial<Record<string, { snapshot: string; asOf: number }>>): boolean {
  return SOURCES.every((source) => reads.snapshots.readSnapshot(source)?.id === exported[source]?.snapshot)
}
