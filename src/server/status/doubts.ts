import { toIso } from '../../base/time.ts'
import { doubtNews, doubtedKinds } from '../../base/domain/doubts.ts'
import { type SourceName, isPrivateSource } from '../../base/domain/sources.ts'
import type { DoubtfulRun } from '../../base/reports/sources.ts'
import type { Reads } from '../../store/reads.ts'
import { findDoubtful } from '../../store/runs/rejected.ts'

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
