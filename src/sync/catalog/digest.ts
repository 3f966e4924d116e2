import { createHash } from 'node:crypto'
import { ownsResource } from '../../domain/resources.ts'
import type { SourceName } from '../../domain/sources.ts'
import type { Reads } from '../../store/reads.ts'

/** Characters that are hashed at once: a call costs as much as hashing some hundred. */
const BATCH = 65_536

/**
 * Returns the digest of everything that a source serves of the catalog, hex: lists, their items in order, answers and
 * the linked documents.
 */
export function digestOfCatalog(reads: Pick<Reads, 'catalog'>, source: SourceName): string {
  const own = (resource: string): boolean => ownsResource(source, resource)
  const hash = createHash('sha256')
  let text = ''
  for (const [path, digest, resource] of reads.catalog.eachAnswerDigest()) {
    if (!own(resource)) continue
    text += `${path} ${digest}\n`
    if (text.length < BATCH) continue
    hash.update(text)
    text = ''
  }
  hash.update(text)
  for (const [path, sha, resource] of reads.catalog.eachEntryDigest())
    if (own(resource)) hash.update(path).update(sha)
  return hash.digest('hex')
}
