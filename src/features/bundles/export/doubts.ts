import { DAY_MS } from '../../../base/time.ts'
import type { SourceName } from '../../../base/domain/sources.ts'
import { DOUBT_NAMES_HEADER, MOST_CARRIED, countsOfDoubts, isCarried } from '../format/doubts.ts'
import type { ManifestHead } from '../format/manifest.ts'
import { writeCarried } from './carried.ts'
import type { ExportSnapshot } from './snapshot.ts'
import type { BundleWriter } from './writer.ts'

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
  const since = sinceOf(reads, base, now)
  const found = sources.map((source) => countsOfDoubts(source, reads.changes.countDoubts(source, since)))
  return Object.assign({}, ...found) as ManifestHead['counts']
}

function sinceOf(reads: ExportSnapshot['reads'], base: number | null, now: number): number {
  const exported = base === null ? null : reads.ledger.readExport(base)
  return exported?.exportedAt ?? now - YOUNG_MS
}

/** Writes the first names of each kind as a member, before the dates of records. Returns their count; none: there is no member. */
export async function writeDoubtNames(
  { reads }: ExportSnapshot,
  sources: readonly SourceName[],
  { base, now, writer }: { readonly base: number | null; readonly now: number; readonly writer: BundleWriter },
): Promise<ManifestHead['counts']> {
  const since = sinceOf(reads, base, now)
  const lines: string[] = []
  for (const source of sources)
    for (const [kind, names] of reads.changes.listDoubtNames(source, since)) {
      const short = names.filter(isCarried)
      for (const name of short.slice(0, MOST_CARRIED.names)) lines.push(JSON.stringify([source, kind, name]))
    }
  return writeCarried(writer, 'doubt-names', { header: DOUBT_NAMES_HEADER, lines })
}
