import { toIso } from '../../base/time.ts'
import { parseScopeText } from '../../base/domain/osv-scope.ts'
import type { SourceName } from '../../base/domain/sources.ts'
import type { CatalogAnswer } from '../../store/catalog/answers.ts'
import type { CatalogList } from '../../store/catalog/lists.ts'
import type { Reads } from '../../store/reads.ts'

/** Origin of an answer, as its X-Mirror headers report it. */
export interface SnapshotOrigin {
  readonly source: SourceName
  /** Snapshot id, hex. */
  readonly snapshot: string
  /** Upstream's date of what is served, ISO 8601 UTC. */
  readonly asOf: string
  /** Changes whenever anything served may have changed. */
  readonly version: string
  /** Value of X-Mirror-Scope: the settings of the scope that the snapshot was made with; none without a scope. */
  readonly scope?: string
  /** Set where items that upstream lists are missing. */
  readonly isPart?: true
  /** The earliest Last-Modified, Unix seconds; missing: that of what is served. */
  readonly notBefore?: number
  /** From when on nothing else was served, Unix seconds; missing: not known. */
  readonly servedSince?: number
  /** Set when it is older than `maxAgeHours` and `staleAction` asks for a header or a refusal. */
  readonly stale?: Staleness
}

/** What an origin that is too old causes. */
interface Staleness {
  /** Value of X-Mirror-Stale: the setting that it exceeds, or that its age is not known. */
  readonly limit: string
  readonly refused: boolean
}

/** Seconds within which a snapshot is served that was published, also in a fleet, whose mirrors wait for each other. */
const SERVED_WITHIN = 60

/** Reads a source's origin from the pinned snapshot of the store; null before its first snapshot. */
export function readOrigin(reads: Reads, source: SourceName): SnapshotOrigin | null {
  const snapshot = reads.snapshots.readSnapshot(source)
  if (snapshot === null) return null
  const { id, sequence, runId, publishedAt, scope, whole } = snapshot
  const asOf = reads.runs.readAsOf(source, snapshot)
  const notBefore = reads.feeds.readDateFloor()
  return {
    source,
    snapshot: id,
    asOf: toIso(asOf),
    version: [id, sequence, runId, publishedAt, notBefore].join(' '),
    ...(scope !== null && { scope: scopeValue(scope) }),
    ...(!whole && { isPart: true }),
    ...(notBefore !== null && { notBefore }),
    servedSince: Math.max(Math.ceil(publishedAt / 1000), notBefore ?? 0) + SERVED_WITHIN,
  }
}

type Confirmed = Pick<CatalogAnswer | CatalogList, 'path' | 'confirmedAt' | 'changed'>

/**
 * Returns the origin with the date of one list or answer: the time of its own last confirmation. Where none is
 * stored, it is the time of its last change. `always`: each complete sync requests it, so the source's date,
 * which only such syncs advance, confirms it too, unless the last run that requested it could not fetch it.
 */
export function originOfOne(
  origin: SnapshotOrigin,
  { path, confirmedAt, changed }: Confirmed,
  { always, reads }: { always: boolean; reads: Pick<Reads, 'catalog'> },
): SnapshotOrigin {
  const whole = Date.parse(origin.asOf)
  const own = confirmedAt ?? Math.min(changed * 1000, whole)
  const asOf = always && whole > own && reads.catalog.readMissingPath(path) === null ? whole : own
  return { ...origin, asOf: toIso(asOf) }
}

/** Returns the origin with an earlier date, Unix milliseconds; the same origin without one. */
export function originNotAfter(origin: SnapshotOrigin, asOf: number | undefined): SnapshotOrigin {
  if (asOf === undefined || asOf >= Date.parse(origin.asOf)) return origin
  return { ...origin, asOf: toIso(asOf) }
}

/** Returns the X-Mirror headers of an answer; none without an origin. */
export function originHeaders(origin: SnapshotOrigin | null | undefined): Record<string, string> {
  if (origin === null || origin === undefined) return {}
  const { snapshot, asOf, scope, stale } = origin
  return {
    'X-Mirror-Snapshot': snapshot,
    'X-Mirror-As-Of': asOf,
    ...(scope !== undefined && { 'X-Mirror-Scope': scope }),
    ...(stale && { 'X-Mirror-Stale': stale.limit }),
  }
}

/** Returns the same as a flat list. */
export function originFields(origin: SnapshotOrigin): string[] {
  return Object.entries(originHeaders(origin)).flat()
}

/** Returns the field that says that many records at once are not all that upstream lists; none where they are. */
export function partFields({ isPart }: SnapshotOrigin): string[] {
  return isPart === true ? ['X-Mirror-Incomplete', 'records'] : []
}

/** Returns a stored scope as a header value: `include="npm", exclude="GHSA-", vendors="Root"`, in percent-encoding. */
function scopeValue(text: string): string {
  const { include, exclude, vendors } = parseScopeText(text) ?? { include: [], exclude: [], vendors: [] }
  const lists = { include, exclude, vendors }
  return Object.entries(lists)
    .filter(([, entries]) => entries.length > 0)
    .map(([name, entries]) => `${name}="${entries.map((one) => encodeURI(one)).join(',')}"`)
    .join(', ')
}
