import type { SourceName } from '../../domain/sources.ts'
import type { CatalogAnswer } from '../../store/catalog/answers.ts'
import type { CatalogList } from '../../store/catalog/lists.ts'
import type { Reads } from '../../store/reads.ts'

/** Where an answer comes from, as its X-Mirror headers say it. */
export interface SnapshotOrigin {
  /** Snapshot id, hex. */
  readonly snapshot: string
  /** Upstream's date of what is served, ISO 8601 UTC. */
  readonly asOf: string
  /** Changes whenever anything served may have changed. */
  readonly version: string
}

/** Reads a source's origin from one moment of the store; null before its first snapshot. */
export function readOrigin(reads: Reads, source: SourceName): SnapshotOrigin | null {
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

type Confirmed = Pick<CatalogAnswer | CatalogList, 'path' | 'confirmedAt' | 'changed'>

/**
 * The same with the date of one list or answer of the source: it is as old as its own last confirmation. Where none was
 * noted, it was what upstream said when it changed here. `always`: each whole sync asks for it, so that the source's date,
 * which only those move, is a confirmation too, unless the last run that asked could not fetch it.
 */
export function originOfOne(
  origin: SnapshotOrigin,
  { path, confirmedAt, changed }: Confirmed,
  { always, reads }: { always: boolean; reads: Pick<Reads, 'isMissingPath'> },
): SnapshotOrigin {
  const whole = Date.parse(origin.asOf)
  const own = confirmedAt ?? Math.min(changed * 1000, whole)
  const asOf = always && whole > own && !reads.isMissingPath(path) ? whole : own
  return { ...origin, asOf: new Date(asOf).toISOString() }
}
