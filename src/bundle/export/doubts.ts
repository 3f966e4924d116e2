import { DAY_MS } from '../../core/time.ts'
import type { SourceName } from '../../domain/sources.ts'
import { countsOfDoubts } from '../format/doubts.ts'
import type { ManifestHead } from '../format/manifest.ts'
import type { ExportSnapshot } from './snapshot.ts'

/** Doubts that a full bundle carries are younger than this. */
const YOUNG_MS = 7 * DAY_MS

/**
 * Returns the counts of what was published although the guard doubted it: since the export on which a delta builds, or in a full
 * bundle within the last days. `base`: the sequence of that export; null: a full bundle, or an unknown one. Unix milliseconds.
 */
export function countDoubts(
  { reads }: ExportSnapshot,
  sources: readonly SourceName[],
  base: number | null,
  now: number,
): ManifestHead['counts'] {
  const exported = base === null ? null : reads.ledger.readExport(base)
  const since = exported?.exportedAt ?? now - YOUNG_MS
  const found = sources.map((source) => countsOfDoubts(source, reads.changes.countDoubts(source, since)))
  return Object.assign({}, ...found) as ManifestHead['counts']
}
