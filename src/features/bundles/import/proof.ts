import { MirrorError } from '../../../base/errors.ts'
import type { SourceName } from '../../../base/domain/sources.ts'
import { valueOf } from '../../../store/replication/rows.ts'
import type { Writes } from '../../../store/writes.ts'
import type { Manifest } from '../format/manifest.ts'
import { manifestSources } from './admission.ts'

type Digests = ReadonlyMap<SourceName, string>

/** Returns the state digests of the stored sources that are not in the bundle. */
export function digestOthers({ carried }: Writes, { sources }: Manifest): Digests {
  const others = carried.listStoredSources().filter((source) => sources[source] === undefined)
  return new Map(others.map((source) => [source, carried.known.digestOf(source)]))
}

/**
 * Proves the result in the open transaction: each source of the manifest is in the described state, to the last row, and
 * all others are unchanged. A mixture of two states, or a forged bundle, is refused here: throws `bundle`.
 */
export function prove(store: Writes, manifest: Manifest, others: Digests): void {
  for (const [source, { digest }] of manifestSources(manifest)) {
    const is = store.carried.known.digestOf(source)
    if (is === digest) continue
    throw new MirrorError(
      'bundle',
      `after applying it, ${source} is not in the state that its manifest describes (${is.slice(0, 12)}, not ${digest.slice(0, 12)}): ` +
        'nothing was changed. Import a full bundle',
    )
  }
  for (const [source, was] of others)
    if (store.carried.known.digestOf(source) !== was)
      throw new MirrorError('bundle', `it would change ${source}, which it does not have`)
  const both = store.carried.readContradiction()
  if (both !== null) throw new MirrorError('bundle', `it has the record ${both} both as stored and as removed`)
  refuseOtherFacts(store, manifest)
}

/** Throws `bundle` if the manifest contradicts the stored row of a source. */
export function refuseOtherFacts({ carried }: Writes, manifest: Manifest): void {
  for (const [source, described] of manifestSources(manifest)) {
    const [row] = [...carried.eachRow(source, 'source')]
    if (row === undefined) throw new MirrorError('bundle', `it does not say which snapshot ${source} is`)
    const { snapshot, records, whole, asOf } = valueOf(row)
    const same = described.snapshot === snapshot && described.records === records && described.whole === whole
    // Upstream may have confirmed the data later.
    if (same && Date.parse(described.asOf) >= asOf) continue
    throw new MirrorError('bundle', `its manifest and its rows contradict each other about ${source}`)
  }
}
