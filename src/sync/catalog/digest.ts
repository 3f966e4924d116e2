import { createHash } from 'node:crypto'
import type { SourceName } from '../../base/domain/sources.ts'
import type { Reads } from '../../store/reads.ts'

/**
 * Returns the digest of everything that a source serves of the catalog, hex: lists, their items in order, answers and
 * the linked documents.
 */
export function digestOfCatalog(reads: Pick<Reads, 'catalog'>, source: SourceName): string {
  const hash = createHash('sha256')
  for (const lines of reads.catalog.servedLines(source)) hash.update(lines)
  return hash.digest('hex')
}
