import { ownsResource } from '../../domain/resources.ts'
import type { SourceName } from '../../domain/sources.ts'
import type { Reads } from '../../store/reads.ts'

/** Lists of a source that are served and not known to be complete. */
export interface PartialLists {
  /** The first twenty by path. */
  partialLists: readonly { readonly path: string; readonly reason: string }[]
  partialListCount: number
}

/** Returns a source's lists that are not known to be complete. */
export function partialListsOf(name: SourceName, reads: Pick<Reads, 'catalog'>): PartialLists {
  if (name !== 'catalog' && name !== 'identity') return { partialLists: [], partialListCount: 0 }
  const own = reads.catalog
    .listPartialLists()
    .filter(({ resource }) => ownsResource(name, resource))
  const partialLists = own.slice(0, 20).map(({ path, reason }) => ({ path, reason }))
  return { partialLists, partialListCount: own.length }
}
