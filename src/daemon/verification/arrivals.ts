import type { Config } from '../../config/schema.ts'
import { signatureMode } from '../../base/domain/artifacts/signature.ts'
import type { PinnedReads } from '../../store/reads.ts'

/** What looks for imported catalogs. */
interface ArrivalOptions {
  readonly config: Pick<Config, 'catalog'>
  readonly reads: Pick<PinnedReads, 'live'>
  /** Has the signatures of what is stored verified. */
  readonly verify: () => void
}

/** Creates what is called whenever more is served: it has the signatures of a catalog that an import brought verified, once. */
export function createArrivals({ config, reads, verify }: ArrivalOptions): () => void {
  let seen = reads.live.snapshots.readSnapshot('catalog')?.id ?? null // the start has it verified
  return () => {
    if (signatureMode(config.catalog) === 'off') return
    const { snapshots, runs } = reads.live
    const id = snapshots.readSnapshot('catalog')?.id ?? null
    if (id === null || id === seen) return
    seen = id
    if (runs.readLatestWith('catalog', id)?.kind === 'import') verify()
  }
}
