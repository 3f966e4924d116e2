import type { SourceName } from '../../../base/domain/sources.ts'
import type { Manifest } from './manifest.ts'

/** The beginning of the names under which a manifest says what it lacks, as `withheld-osv`: older programs ignore them. */
export const WITHHELD_COUNT = 'withheld-'

/** Returns the counts of a manifest for sources of which a newer state is quarantined or rejected at the mirror that makes it. */
export function countsOfWithheld(sources: readonly SourceName[]): Manifest['counts'] {
  return Object.fromEntries(sources.map((source) => [nameOf(source), { put: 1, removed: 0 }]))
}

/** Reports whether the mirror that made a bundle withheld a newer state of a source. */
export function isWithheld({ counts }: Pick<Manifest, 'counts'>, source: SourceName): boolean {
  return (counts[nameOf(source)]?.put ?? 0) > 0
}

function nameOf(source: SourceName): string {
  return `${WITHHELD_COUNT}${source}`
}
