import { MirrorError } from '../../base/errors.ts'
import type { Db } from '../database/open.ts'

/** Why a stored list may lack items: something speaks of more (`cut`), or its end is not proved (`unproved`). */
export interface Incompleteness {
  grade: 'cut' | 'unproved'
  reason: string
}

/** Creates the read of how complete lists are; usable on any connection. */
export function createCompletenessReader(db: Db) {
  const grades = db.prepare<[string], { partial: string | null; unproved: string | null }>(
    `SELECT json_extract(frame, '$.partial') AS partial, json_extract(frame, '$.unproved') AS unproved
     FROM catalog_list WHERE path = ?`,
  )
  const missing = db.prepare<[string], string | null>('SELECT reason FROM catalog_lacking WHERE path = ?').pluck()
  return {
    /** Returns why a list, by its canonical path, may lack items, or all of them: it is not stored; null: it is whole by all evidence. */
    whyIncomplete(path: string): Incompleteness | null {
      const stored = grades.get(path)
      if (stored === undefined) {
        const why = missing.get(path) ?? null
        return { grade: 'cut', reason: why === null ? `${path} is not stored` : `not stored: ${why}` }
      }
      const { partial, unproved } = stored
      if (partial !== null) return { grade: 'cut', reason: partial }
      return unproved === null ? null : { grade: 'unproved', reason: unproved }
    },
  }
}

/**
 * Throws `not_ready` for an answer that takes a whole list, over one that is cut: a filter, an order, a look-up that found
 * nothing, or what is derived of all items. It would be taken for the service's own "there is none". `found`: what the
 * mirror knows, as "what is stored of the service's list of tags does not name it".
 */
export function requireWhole(incomplete: Incompleteness | null, found: string): void {
  if (incomplete?.grade !== 'cut') return
  throw new MirrorError(
    'not_ready',
    `${found}, and that is not known to be complete (${incomplete.reason}); every sync tries to read the rest`,
  )
}

/** Says that a list may lack items; null for a whole one. */
export function describeIncomplete(incomplete: Incompleteness | null): string | null {
  return incomplete === null ? null : `the list is not known to be complete: ${incomplete.reason}`
}

/** Longest value of the header, characters. */
const LONGEST = 500

/** Returns the header of an answer from a list that may lack items, as a flat list; an empty one for a whole list. */
export function incompleteFields(incomplete: Incompleteness | null): string[] {
  if (incomplete === null) return []
  const { grade, reason } = incomplete
  const value = grade === 'unproved' ? grade : reason.replace(/[^\x20-\x7e]/g, '?').slice(0, LONGEST)
  return ['X-Mirror-Incomplete', value]
}
