import { toIso } from '../../base/time.ts'
import type { BundleStatus } from '../../base/reports/transfer.ts'
import type { ImportedBundle } from '../../store/replication/ledger.ts'

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
