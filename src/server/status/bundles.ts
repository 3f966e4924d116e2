import { toIso } from '../../base/time.ts'
import type { ImportedBundle } from '../../store/replication/ledger.ts'

/** A bundle in the report; times in ISO 8601 UTC. */
export interface BundleStatus {
  /** Identity of the mirror that made it, and its number there. */
  mirror: string
  sequence: number
  kind: 'full' | 'delta'
  /** The trusted key that signed it; null: unsigned, and that was allowed. */
  key: string | null
  /** Upstream's date of the oldest that it brought. */
  asOf: string
  createdAt: string
  importedAt: string
  /** It was older than the stored state. */
  rollback: boolean
}

/** Returns the report on the last imported bundle, without the name of its file, which is private. */
export function bundleStatus(last: ImportedBundle | null): BundleStatus | null {
  if (last === null) return null
  const { mirror, sequence, kind, keyId: key, rollback } = last
  return {
    mirror,
    sequence,
    kind,
    key,
    rollback,
    asOf: toIso(last.asOf),
    createdAt: toIso(last.createdAt),
    importedAt: toIso(last.importedAt),
  }
}
