import type { Config } from '../../config/schema.ts'
import { MirrorError } from '../../base/errors.ts'
import { NO_AGE, type SourceName, SOURCES, ageSecondsOf } from '../../base/domain/sources.ts'
import type { Reads } from '../../store/reads.ts'
import { type SnapshotOrigin, readOrigin } from '../http/origin.ts'
import { describeOverAge } from '../status/age.ts'

/** The settings that decide what an outdated source answers. */
type StaleSettings = {
  readonly [Name in SourceName]: Pick<Config[Name], 'maxAgeHours' | 'staleAction'>
}

/** Returns an origin marked as stale when it is older than its source's settings allow or its age is not known, else itself. */
export type StaleRule = (source: SourceName, origin: SnapshotOrigin) => SnapshotOrigin

/**
 * Creates the rule of `staleAction`. The same origin always gives the same marked object, so that heads made from it
 * are reused. `now`: Unix milliseconds.
 */
export function createStaleRule(settings: StaleSettings, now: () => number): StaleRule {
  const marked = new WeakMap<SnapshotOrigin, SnapshotOrigin>()
  return (source, origin) => {
    const { staleAction } = settings[source]
    if (staleAction === 'serve') return origin
    const limit = describeOverAge(settings, source, ageSecondsOf(Date.parse(origin.asOf), now()))
    if (limit === null) return origin
    const known = marked.get(origin)
    if (known !== undefined) return known
    const stale = { ...origin, stale: { limit, refused: staleAction === 'refuse' } }
    marked.set(origin, stale)
    return stale
  }
}

/** Reports whether `staleAction` refuses to serve a source now. */
export function isRefused(origin: SnapshotOrigin | null): boolean {
  return origin?.stale?.refused === true
}

/** Returns the origin; throws `stale` when `staleAction` refuses to serve it. */
export function refuseStale(origin: SnapshotOrigin): SnapshotOrigin {
  if (!isRefused(origin)) return origin
  const limit = origin.stale?.limit ?? ''
  const until = limit === NO_AGE ? 'once both agree' : 'after the next complete sync or import'
  throw new MirrorError(
    'stale',
    `what this mirror has is as of ${origin.asOf}, ${limit}, and staleAction is refuse: it is served again ${until}`,
  )
}

type OriginOf = Record<SourceName, SnapshotOrigin | null>

/** The origins of all sources as they were read, and as they are served: marked when they are too old. */
export function createAgedOrigins(reads: Reads, markStale: StaleRule) {
  const stored: OriginOf = { osv: null, feeds: null, catalog: null, identity: null }
  const served = { ...stored }
  return {
    /** Reads a source's origin again; false when nothing served of it has changed. Call `judge` afterwards. */
    read(source: SourceName): boolean {
      const before = stored[source]?.version
      stored[source] = readOrigin(reads, source)
      return stored[source]?.version !== before
    },
    /** Compares the ages with the clock. */
    judge(): void {
      for (const source of SOURCES) {
        const origin = stored[source]
        served[source] = origin && markStale(source, origin)
      }
    },
    known: (source: SourceName): SnapshotOrigin | null => served[source],
  }
}
