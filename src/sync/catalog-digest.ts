import { createHash } from 'node:crypto'
import { ownsResource } from '../resources.ts'
import type { Reads } from '../store/pinned.ts'
import type { SourceName } from '../store/runs.ts'

/** Digest of all that a source serves of the catalog, hex: lists, their items in order, answers and the documents named. */
export function digestOfCatalog(
  reads: Pick<Reads, 'eachCatalogDigest' | 'eachEntryDigest'>,
  source: SourceName,
): string {
  const own = (resource: string): boolean => ownsResource(source, resource)
  const hash = createHash('sha256')
  for (const [path, text, resource] of reads.eachCatalogDigest())
    if (own(resource)) hash.update(`${path} ${text}\n`)
  for (const [path, sha, resource] of reads.eachEntryDigest())
    if (own(resource)) hash.update(path).update(sha)
  return hash.digest('hex')
}
