import { MirrorError } from '../../core/errors.ts'
import type { SourceName } from '../../domain/sources.ts'
import type { Writes } from '../../store/writer.ts'
import type { Manifest } from '../format/manifest.ts'
import { manifestSources } from './admission.ts'

type Digests = ReadonlyMap<SourceName, string>

/** The state digests of what is held and is no business of a bundle's. */
export function digestOthers({ carried }: Writes, { sources }: Manifest): Digests {
  const others = carried.listStoredSources().filter((source) => sources[source] === undefined)
  return new Map(others.map((source) => [source, carried.digestOf(source)]))
}

/**
 * Proves what the open transaction holds: each source of the manifest is in the state that it promises, to the last row,
 * and all others are as they were. A mixture of two states, or a bundle that is not what it says, ends here: throws `bundle`.
 */
export function prove(store: Writes, manifest: Manifest, others: Digests): void {
  for (const [source, { digest }] of manifestSources(manifest)) {
    const is = store.carried.digestOf(source)
    if (is === digest) continue
    throw new MirrorError(
      'bundle',
      `after applying it, ${source} is not in the state that it promises (${is.slice(0, 12)}, not ${digest.slice(0, 12)}): ` +
        'nothing was changed. Import a full bundle',
    )
  }
  for (const [source, was] of others)
    if (store.carried.digestOf(source) !== was)
      throw new MirrorError('bundle', `it would change ${source}, which it does not have`)
  const both = store.readContradiction()
  if (both !== null)
    throw new MirrorError(
      'bundle',
      `it says of record ${both} that it is there and that it is gone`,
    )
  refuseOtherFacts(store, manifest)
}

/** Throws `bundle` where the manifest says of a source something else than its own row, which is held. */
export function refuseOtherFacts({ carried }: Writes, manifest: Manifest): void {
  for (const [source, said] of manifestSources(manifest)) {
    const [row] = [...carried.eachRow(source, 'source')]
    if (row === undefined)
      throw new MirrorError('bundle', `it does not say which snapshot ${source} is`)
    const { snapshot, records, whole, asOf } = row.value
    const same = said.snapshot === snapshot && said.records === records && said.whole === whole
    // Upstream may have confirmed later what was as of then.
    if (same && Date.parse(said.asOf) >= asOf) continue
    throw new MirrorError('bundle', `its manifest and its rows say different things of ${source}`)
  }
}
