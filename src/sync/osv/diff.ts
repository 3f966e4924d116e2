import type { RunFacts } from '../../store/runs/runs.ts'
import type { Writes } from '../../store/writes.ts'
import type { Ids } from './id-table.ts'
import type { IdList, OsvIndex } from './index-parser.ts'
import { lackFacts } from './upstream-mirror.ts'

/** The difference between the index and the stored records, as sets of (id, modified). */
interface ListedDifference {
  added: IdList
  /** Stored under another stamp (newer or older), or suspect since an earlier run. */
  changed: string[]
  /** Stored, and not listed any more. */
  removed: string[]
  stored: number
}

/** What a run has to do. */
export interface OsvPlan extends ListedDifference {
  /** Stored and listed, and out of scope. */
  dropped: string[]
  /** Whether there is nothing to fetch and nothing to remove. */
  isEmpty: boolean
}

/** Compares the index with the stored records, both as sets of (id, modified). */
export function planOsv(
  store: Pick<Writes['osv'], 'eachPair' | 'listSuspectIds' | 'readEntry'>,
  { ids, scope }: OsvIndex,
): OsvPlan {
  const found = differenceToStored(store, ids)
  const changed = [...found.changed]
  for (const id of store.listSuspectIds()) {
    const ordinal = ids.get(id)
    if (ordinal === undefined) continue
    if (store.readEntry(id)?.modified === ids.modifiedAt(ordinal)) changed.push(id)
  }
  const isListed = (id: string): boolean => scope?.listed.get(id) !== undefined
  const dropped = found.removed.filter(isListed)
  const removed = found.removed.filter((id) => !isListed(id))
  const isEmpty = found.added.length + changed.length + found.removed.length === 0
  return { ...found, changed, dropped, removed, isEmpty }
}

function differenceToStored(store: Pick<Writes['osv'], 'eachPair'>, ids: Ids): ListedDifference {
  const changed: string[] = []
  const removed: string[] = []
  let stored = 0
  const seen = new Uint8Array(ids.size)
  for (const [id, modified] of store.eachPair()) {
    stored++
    const ordinal = ids.get(id)
    if (ordinal === undefined) removed.push(id)
    else {
      seen[ordinal] = 1
      if (ids.modifiedAt(ordinal) !== modified) changed.push(id)
    }
  }
  return { added: unseen(seen, ids), changed, removed, stored }
}

/** Returns the ids that were not seen; each string is made as it is read. */
function unseen(seen: Uint8Array, ids: Ids): IdList {
  let length = 0
  for (const flag of seen) if (flag === 0) length++
  return {
    length,
    *[Symbol.iterator]() {
      for (let at = seen.indexOf(0); at >= 0; at = seen.indexOf(0, at + 1)) yield ids.idAt(at)
    },
  }
}

/** Returns what a run reports of the index and the difference. */
export function planFacts(index: OsvIndex, { added, changed, removed }: OsvPlan): RunFacts {
  const facts: RunFacts = {
    listed: (index.scope?.listed ?? index.ids).size,
    added: added.length,
    changed: changed.length,
    removed: removed.length,
    removedIds: removed.slice(0, 20),
  }
  Object.assign(facts, lackFacts(index.lacks))
  if (index.duplicates > 0) facts['duplicateIds'] = index.duplicates
  if (index.unusable > 0) {
    facts['unusableEntries'] = index.unusable
    facts['unusable'] = index.skipped
  }
  return facts
}
