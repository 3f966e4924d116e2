import { DOUBTS, type Doubt, type DoubtCounts } from '../../domain/doubts.ts'
import type { SourceName } from '../../domain/sources.ts'
import type { Manifest } from './manifest.ts'

/** The beginning of the names under which a manifest counts doubts, as `doubts-osv-affectedlost`: older programs ignore them. */
export const DOUBTS_COUNT = 'doubts-'

/** Returns the counts of a manifest for what the mirror that made it published although its guard doubted it. */
export function countsOfDoubts(source: SourceName, counts: DoubtCounts): Manifest['counts'] {
  const kinds = Object.entries(counts)
  return Object.fromEntries(kinds.map(([kind, put]) => [nameOf(source, kind), { put, removed: 0 }]))
}

/** Returns how many items of each kind of a source the manifests of a series count. */
export function doubtsCounted(manifests: readonly Pick<Manifest, 'counts'>[], source: SourceName): DoubtCounts {
  const found: Partial<Record<Doubt, number>> = {}
  for (const kind of Object.keys(DOUBTS) as Doubt[]) {
    const name = nameOf(source, kind)
    const count = manifests.reduce((most, { counts }) => Math.max(most, counts[name]?.put ?? 0), 0)
    if (count > 0) found[kind] = count
  }
  return found
}

function nameOf(source: SourceName, kind: string): string {
  return `${DOUBTS_COUNT}${source}-${kind.toLowerCase()}`
}
