import type { Writes } from '../../store/writer.ts'
import type { IdTable } from './id-table.ts'
import type { OsvIndex } from './index-parser.ts'

/** The difference between what upstream lists and what is held, as sets of (id, modified). */
export interface OsvPlan {
  added: string[]
  /** Held under another stamp, changed forward or back, or in doubt since an earlier run. */
  changed: string[]
  removed: string[]
  held: number
}

/** Compares the index with what is held, both as sets of (id, modified). */
export function planOsv(
  store: Pick<Writes, 'eachPair' | 'eachPairText' | 'listSuspectIds' | 'readEntry'>,
  { ids }: OsvIndex,
): OsvPlan {
  const plan = planFromTexts(store, ids) ?? planFromPairs(store, ids)
  for (const id of store.listSuspectIds()) {
    const ordinal = ids.get(id)
    if (ordinal === undefined) continue
    if (store.readEntry(id)?.modified === ids.modifiedAt(ordinal)) plan.changed.push(id)
  }
  return plan
}

/** From the bytes of ids and stamps, without a string for each; null when a text does not divide as it should. */
function planFromTexts(store: Pick<Writes, 'eachPairText'>, ids: IdTable): OsvPlan | null {
  const plan: OsvPlan = { added: [], changed: [], removed: [], held: 0 }
  const seen = new Uint8Array(ids.size)
  for (const { text, records } of store.eachPairText()) {
    let at = 0
    let held = 0
    while (at < text.length) {
      const idEnd = nextNul(text, at)
      const end = nextNul(text, idEnd + 1)
      if (end >= text.length) return null
      held++
      const ordinal = ids.find(text, at, idEnd)
      if (ordinal === undefined) plan.removed.push(text.toString('utf8', at, idEnd))
      else {
        seen[ordinal] = 1
        if (!ids.isModifiedAt(ordinal, text, idEnd + 1, end)) plan.changed.push(ids.idAt(ordinal))
      }
      at = end + 1
    }
    if (held !== records) return null
    plan.held += held
  }
  return withAdded(plan, seen, ids)
}

/** A loop, for the texts are short: no call pays. */
function nextNul(text: Buffer, from: number): number {
  let at = from
  while (at < text.length && text[at] !== 0) at++
  return at
}

function planFromPairs(store: Pick<Writes, 'eachPair'>, ids: IdTable): OsvPlan {
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
  return withAdded(plan, seen, ids)
}

function withAdded(plan: OsvPlan, seen: Uint8Array, ids: IdTable): OsvPlan {
  for (let ordinal = 0; ordinal < seen.length; ordinal++) {
    if (seen[ordinal] === 0) plan.added.push(ids.idAt(ordinal))
  }
  return plan
}

/** Nothing to fetch and nothing to remove. */
export function isEmpty(plan: OsvPlan): boolean {
  return plan.added.length + plan.changed.length + plan.removed.length === 0
}
