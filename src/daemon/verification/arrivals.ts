import type { Config } from '../../config/schema.ts'
import { sha256Hex } from '../../base/digest.ts'
import { signatureMode } from '../../base/domain/artifacts/signature.ts'
import type { PinnedReads } from '../../store/reads.ts'

/** What looks for imported catalogs. */
interface ArrivalOptions {
  readonly config: Pick<Config, 'catalog'>
  readonly reads: Pick<PinnedReads, 'live'>
  /** Has the signatures of what is stored verified. */
  readonly verify: () => void
}

/**
 * Creates what is called whenever more is served: it has the signatures of a catalog that an import brought verified, once, and again
 * where a later one brings other keys.
 */
export function createArrivals({ config, reads, verify }: ArrivalOptions): () => void {
  const { snapshots, runs, catalog } = reads.live
  const look = () => ({
    id: snapshots.readSnapshot('catalog')?.id ?? null,
    keys: sha256Hex(JSON.stringify(catalog.listCarriedTrust())),
  })
  let seen = look() // the start has it verified
  return () => {
    if (signatureMode(config.catalog) === 'off') return
    const { id, keys } = look()
    if (id === null || (id === seen.id && keys === seen.keys)) return
    seen = { id, keys }
    if (runs.readLatestWith('catalog', id)?.kind === 'import') verify()
  }
}
