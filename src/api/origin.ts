import type { Reads } from '../store/pinned.ts'
import type { SourceName } from '../store/runs.ts'

/** Where an answer comes from, as its X-Mirror headers say it. */
export interface Origin {
  /** Snapshot id, hex. */
  readonly snapshot: string
  /** Upstream's date of what is served, ISO 8601 UTC. */
  readonly asOf: string
  /** Changes whenever anything served may have changed. */
  readonly version: string
}

/** Reads a source's origin from one moment of the store; null before its first snapshot. */
export function readOrigin(reads: Reads, source: SourceName): Origin | null {
  const snapshot = reads.readSnapshot(source)
  if (snapshot === null) return null
  const { id, sequence, runId, publishedAt } = snapshot
  const asOf = Math.max(snapshot.asOf, reads.readConfirmedAt(source) ?? 0)
  return {
    snapshot: id,
    asOf: new Date(asOf).toISOString(),
    version: [id, sequence, runId, publishedAt].join(' '),
  }
}
