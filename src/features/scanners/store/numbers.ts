/**
 * Numbers of records in views.db: in the order of the ids, so that indexes and archives are ordered by short integers, with
 * gaps for the records that later generations have between them.
 */
export const GAP = 2 ** 26
/** Distance of a new record from the one before it: records of a year or a vendor mostly arrive in ascending order. */
const STEP = 2 ** 13

/** Chooses the number of a record between two; null when none is free: then all are numbered again. */
export function numberBetween(before: number | null, after: number | null): number | null {
  const from = before ?? (after ?? GAP) - GAP
  const to = after ?? from + 2 * GAP
  const number = after === null ? from + GAP : from + Math.min(STEP, Math.floor((to - from) / 2))
  return number > from && number < to ? number : null
}

/** SQL: the number of the last record whose id is not after the parameter; below all numbers when there is none. */
export const NUMBER_UP_TO =
  '(SELECT ifnull(max(num), -1e18) FROM (SELECT num FROM record WHERE id <= ? ORDER BY id DESC LIMIT 1))'
