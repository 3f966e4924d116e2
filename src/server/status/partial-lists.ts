import { ownsResource } from '../../base/domain/resources.ts'
import type { SourceName } from '../../base/domain/sources.ts'
import type { Reads } from '../../store/reads.ts'

/** A list with the reason why it may be incomplete. */
interface NamedList {
  readonly path: string
  readonly reason: string
}

/** Lists of a source that are served and not known to be complete. */
export interface PartialLists {
  /** The first twenty by path. */
  partialLists: readonly NamedList[]
  partialListCount: number
  /** The first twenty of those whose end is not proved, though nothing speaks of more. */
  unprovedLists?: readonly NamedList[]
}

/** Lists that are named, at most. */
const NAMED = 20

/** Returns a source's lists that are not known to be complete, and those whose end is not proved. */
export function partialListsOf(name: SourceName, reads: Pick<Reads, 'catalog'>): PartialLists {
  if (name !== 'catalog' && name !== 'identity') return { partialLists: [], partialListCount: 0, unprovedLists: [] }
  const isOwn = ({ resource }: { resource: string }): boolean => ownsResource(name, resource)
  const nameOf = ({ path, reason }: NamedList): NamedList => ({ path, reason })
  const partial = reads.catalog.listPartialLists().filter(isOwn)
  const unproved = reads.catalog.listUnprovedLists().filter(isOwn)
  return {
    partialLists: partial.slice(0, NAMED).map(nameOf),
    partialListCount: partial.length,
    unprovedLists: unproved.slice(0, NAMED).map(nameOf),
  }
}
