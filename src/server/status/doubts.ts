import { toIso } from '../../base/time.ts'
import { type Doubt, doubtNews, doubtedKinds } from '../../base/domain/doubts.ts'
import { type SourceName, isPrivateSource } from '../../base/domain/sources.ts'
import type { Reads } from '../../store/reads.ts'
import { findDoubtful } from '../../store/runs/rejected.ts'

/** The newest run of the last 24 hours that published what its guard doubted, until an operator acknowledges it. */
export interface DoubtfulRun {
  readonly run: number
  readonly snapshot: string | null
  /** When it ended, ISO 8601 UTC. */
  readonly at: string
  readonly message: string | null
  /** What it hides, one sentence a kind, as `161 more findings are ruled out by VEX since the run of 2026-05-01 10:05 UTC`. */
  readonly words: readonly string[]
  /** Empty where they are not stored. */
  readonly kinds: readonly {
    readonly kind: Doubt
    readonly records: number
    /** The first twenty; none of what is private. */
    readonly ids: readonly string[]
  }[]
}

/** Records of each kind that the report names. */
const NAMED = 20

/** Returns the doubtful run of a source that is to be looked at; null: there is none. */
export function doubtfulRunOf(reads: Reads, source: SourceName, now: number): DoubtfulRun | null {
  const found = findDoubtful(reads, source, now)
  if (found === null) return null
  const { id, snapshot, startedAt, endedAt, message } = found
  const stored = snapshot === null ? null : reads.changes.readDoubtsOf(source, snapshot)
  const kinds = stored?.run === id ? doubtedKinds(stored.doubted, stored.counts) : []
  const counts = kinds.map(([kind, ids]) => [kind, stored?.counts?.[kind] ?? ids.length] as const)
  const at = toIso(endedAt ?? startedAt)
  return {
    run: id,
    snapshot,
    at,
    message,
    words: doubtNews(counts, at),
    kinds: kinds.map(([kind, ids], place) => {
      const named = isPrivateSource(source) ? [] : ids.slice(0, NAMED)
      return { kind, records: counts[place]?.[1] ?? 0, ids: named }
    }),
  }
}
