import type { Writes } from '../store/writes.ts'
import type { OsvIndex } from './osv-index.ts'

/** The difference between what upstream lists and what is held, as sets of (id, modified). */
export interface OsvPlan {
  added: string[]
  /** Held under another stamp, changed forward or back, or in doubt since an earlier run. */
  changed: string[]
  removed: string[]
  held: number
}

/** Compares the index with what is held, both as sets of (id, modified). */
export function planOsv(store: Writes, { ids }: OsvIndex): OsvPlan {
  const plan: OsvPlan = { added: [], changed: [], removed: [], held: 0 }
  const seen = new Uint8Array(ids.size)
  for (const [id, modified] of store.eachPair()) {
    plan.held++
    const ordinal = ids.get(id)
    if (ordinal === undefined) plan.removed.push(id)
    else {
      seen[ordinal] = 1
      if (ids.modifiedAt(ordinal) !== modified) plan.changed.push(id)
    }
  }
  for (let ordinal = 0; ordinal < seen.length; ordinal++) {
    if (seen[ordinal] === 0) plan.added.push(ids.idAt(ordinal))
  }
  for (const id of store.listDoubted()) {
    const ordinal = ids.get(id)
    if (ordinal === undefined) continue
    if (store.readEntry(id)?.modified === ids.modifiedAt(ordinal)) plan.changed.push(id)
  }
  return plan
}

/** Nothing to fetch and nothing to remove. */
export function isEmpty(plan: OsvPlan): boolean {
  return plan.added.length + plan.changed.length + plan.removed.length === 0
}
