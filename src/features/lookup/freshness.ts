import { type SnapshotOrigin, readOrigin } from '../../server/http/origin.ts'
import { notReady } from '../../server/snapshot/not-ready.ts'
import { type MissingParts, describeMissing, missingOf } from '../../server/snapshot/missing.ts'
import { SOURCE_NAMES } from '../../server/snapshot/served.ts'
import { createStaleRule, isRefused, refuseStale } from '../../server/snapshot/stale.ts'
import { describeOverAge } from '../../server/status/age.ts'
import type { Config } from '../../config/schema.ts'
import { MirrorError } from '../../base/errors.ts'
import { describeOsvScope, parseScopeText } from '../../base/domain/osv-scope.ts'
import { SWITCHES, type SourceName, activeSources, ageSecondsOf } from '../../base/domain/sources.ts'
import type { Reads } from '../../store/reads.ts'
import { whyWithheld } from '../../store/runs/rejected.ts'
import { timeOf } from '../../cli/output.ts'
import { duration } from '../../base/time.ts'

/** A source that was read, and how old its data is. */
interface UsedSource extends MissingParts {
  readonly name: SourceName
  readonly snapshot: string
  /** Upstream's date of the data, ISO 8601 UTC. */
  readonly asOf: string
  /** Null: its date is later than this machine's clock. */
  readonly ageSeconds: number | null
  /** The setting that the age exceeds, where `staleAction` marks that; null otherwise. */
  readonly stale: string | null
  /** Which part of upstream's records is mirrored, in words; absent: all of them. */
  readonly scope?: string
}

/** Says which sources a lookup reads, and why one cannot be read. */
export type Freshness = ReturnType<typeof createFreshness>

/** Creates the freshness of one snapshot; `now`: Unix milliseconds. */
export function createFreshness(config: Config, reads: Reads, now: number) {
  const found = new Map<SourceName, { used: UsedSource; marks: string[] }>()
  let oldIndex: string | null = null
  const markStale = createStaleRule(config, () => now)
  /** Marks a source as read; returns its origin, or why it has no data. */
  const mark = (source: SourceName): SnapshotOrigin | MirrorError => {
    const stored = readOrigin(reads, source)
    if (stored === null)
      return isOff(config, source)
        ? new MirrorError('not_ready', `not mirrored: ${SOURCE_NAMES[source]}: ${SWITCHES[source]}`)
        : notReady(reads, source, SOURCE_NAMES[source])
    const origin = markStale(source, stored)
    const { snapshot, asOf, stale } = origin
    const ageSeconds = ageSecondsOf(Date.parse(asOf), now)
    const missing = missingOf(reads, source)
    const withheld = whyWithheld(reads, source)
    const scope = scopeOf(reads, source)
    const known = marksOf(config, source, { ageSeconds, withheld, ...missing })
    found.set(source, {
      used: {
        name: source,
        snapshot,
        asOf,
        ageSeconds,
        stale: stale?.limit ?? null,
        ...missing,
        ...(scope === null ? {} : { scope }),
      },
      marks: scope === null ? known : [...known, `the mirror has only a part of the records: ${scope}`],
    })
    return origin
  }
  return {
    /** Marks a source as read. Returns why it has no data, null when it has. Throws `stale` when its age refuses it. */
    use(source: SourceName): MirrorError | null {
      const origin = mark(source)
      if (origin instanceof MirrorError) return origin
      refuseStale(origin)
      return null
    },
    /** Does the same for what `staleAction` does not concern: dates alone, which stay true however old the data is. */
    useDates(source: SourceName): MirrorError | null {
      const origin = mark(source)
      if (origin instanceof MirrorError) return origin
      if (isRefused(origin)) found.get(source)?.marks.push(DATES_ALONE)
      return null
    },
    /** Marks a source as read, whatever its age; one without data is none. */
    mark: (source: SourceName): void => void mark(source),
    /** Marks the records where the index of packages, of the snapshot that is named, is an older one. */
    useIndex(snapshot: string): void {
      if (oldIndex !== null || reads.snapshots.readSnapshot('osv')?.id === snapshot) return
      oldIndex = `packages and other ids are those of the earlier snapshot ${snapshot.slice(0, 12)}: the index of this one is not built yet`
      found.get('osv')?.marks.push(oldIndex)
    },
    /** Why what is not found in the index of packages may be stored; null: it was not read, or is that of the records. */
    oldIndex: (): string | null => oldIndex,
    /** Whether the settings have this mirror sync or store the source. */
    isExpected: (source: SourceName): boolean =>
      activeSources(config).includes(source) || readOrigin(reads, source) !== null,
    used: (): readonly UsedSource[] => [...found.values()].map(({ used }) => used),
    /** A line for people on each of them. */
    lines: (): string[] => [...found.values()].map(({ used, marks }) => freshnessLine(used, marks)),
    /** The lines on sources that are too old, lack something, or of which a newer state is withheld. */
    warnings: (): string[] =>
      [...found.values()].flatMap(({ used, marks }) => (marks.length === 0 ? [] : [freshnessLine(used, marks)])),
  }
}

/** Returns which part of the records is mirrored, in words; null: all of them. */
function scopeOf({ snapshots }: Reads, source: SourceName): string | null {
  const scope = parseScopeText(snapshots.readSnapshot(source)?.scope ?? null)
  return scope === null ? null : describeOsvScope(scope)
}

/** Why dates are shown although `staleAction` is `refuse`. */
const DATES_ALONE = 'shown although staleAction is refuse, since these are dates alone'

/** Reports whether the settings of a mirror with an upstream leave a source out. */
function isOff(config: Config, source: SourceName): source is keyof typeof SWITCHES {
  const isSwitched = source in SWITCHES && config.upstream.apiRoot !== null
  return isSwitched && !activeSources(config).includes(source)
}

/**
 * Returns what people must know of a source beside its date: that it is older than its policy, whatever `staleAction` does
 * then, that something of it is missing, and that a newer state of it is withheld.
 */
export function marksOf(config: Config, source: SourceName, { ageSeconds, withheld, ...missing }: Known): string[] {
  const over = describeOverAge(config, source, ageSeconds)
  const marks = [over, describeMissing(source, missing), withheld]
  return marks.filter((mark) => mark !== null)
}

/** What is known of a source beside its date. */
interface Known extends MissingParts {
  readonly ageSeconds: number | null
  /** Why a newer state is not published (`whyWithheld`); null: nothing of that is known. */
  readonly withheld: string | null
}

function freshnessLine({ name, snapshot, asOf, ageSeconds }: UsedSource, marks: readonly string[]): string {
  return [`${name}: snapshot ${snapshot.slice(0, 12)}, ${ageWords(asOf, ageSeconds)}`, ...marks].join('; ')
}

/** Returns upstream's date of data and how old it is: one that is not known is among the marks (`marksOf`). */
export function ageWords(asOf: string, ageSeconds: number | null): string {
  const at = `as of ${timeOf(Date.parse(asOf))}`
  return ageSeconds === null ? at : `${at}, ${duration(ageSeconds)} old`
}
