import { HOUR_MS } from '../../../base/time.ts'
import { sha256Of } from '../../../base/digest.ts'
import type { CatalogContext } from '../context.ts'

/**
 * Returns whether an answer confirmed long ago is due for another request: at a point within the second half of
 * `catalog.reconcileHours` that depends on its path, so that answers fetched by one sync do not all become due
 * together.
 */
export function isConfirmationDue(
  { config, now }: Pick<CatalogContext, 'config' | 'now'>,
  { path, confirmedAt }: { path: string; confirmedAt: number | null },
): boolean {
  const share = sha256Of(path).readUInt32BE(0) / 2 ** 32
  const wait = config.catalog.reconcileHours * HOUR_MS * (0.5 + share / 2)
  const age = now() - (confirmedAt ?? 0)
  return age >= wait || age < 0 // dated in the future: by a clock that was ahead, so the age is not known
}
