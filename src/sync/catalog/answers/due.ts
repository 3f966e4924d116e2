import { createHash } from 'node:crypto'
import type { CatalogContext } from '../context.ts'

const HOUR_MS = 3_600_000

/**
 * Whether it is time to ask again for what was confirmed long ago: at a time of its own within the second half of
 * `catalog.reconcileHours`, so that what one sync took does not all come due at once.
 */
export function isTimeOf(
  { config, now }: Pick<CatalogContext, 'config' | 'now'>,
  { path, confirmedAt }: { path: string; confirmedAt: number | null },
): boolean {
  const share = createHash('sha256').update(path).digest().readUInt32BE(0) / 2 ** 32
  const wait = config.catalog.reconcileHours * HOUR_MS * (0.5 + share / 2)
  return now() - (confirmedAt ?? 0) >= wait
}
