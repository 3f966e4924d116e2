import { ownsResource } from '../../base/domain/resources.ts'
import type { SourceName } from '../../base/domain/sources.ts'
import type { SourceStatus } from '../../base/reports/sources.ts'
import type { Reads } from '../../store/reads.ts'

/** Lists of a source that are served and not known to be complete. */
type PartialLists = Pick<SourceStatus, 'partialLists' | 'partialListCount' | 'unprovedLists'>

/** Lists that are named, at most. */
const NAMED = 20

/** Returns a source's lists that are not known to be complete, and those whose end is not proved. */
export function partialListsOf(name: SourceName, reads: Pick<Reads, 'catalog'>): PartialLists {
  if (name !== 'catalog' && name !== 'identity') return { partialLists: [], partialListCount: 0, unprovedLists: [] }
  const isOwn = ({ resource }: { resource: string }): boolean => ownsResource(name, resource)
  const nameOf = ({ path, reason }: PartialLists['partialLists'][number]) => ({ path, reason })
  const partial = reads.catalog.listPartialLists().filter(isOwn)
  const unproved = reads.catalog.listUnprovedLists().filter(isOwn)
  return {
    partialLists: partial.slice(0, NAMED).map(nameOf),
    partialListCount: partial.length,
    unprovedLists: unproved.slice(0, NAMED).map(nameOf),
  }
}
