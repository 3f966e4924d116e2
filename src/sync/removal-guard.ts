/** Limits of the deletion guard: a run that would remove more than both is quarantined (promise 5). */
interface GuardLimits {
  /** Share of what is held, 0 to 1. */
  fraction: number
  /** Number of records or entries. */
  count: number
}

/**
 * Why a change must not be applied without someone's word, or null when it may. A feed that becomes wholly
 * empty is always held back: no source loses everything at once for a good reason.
 */
export function refuseRemoval(
  held: number,
  removed: number,
  limits: GuardLimits,
  noun: string,
): string | null {
  if (held > 0 && removed === held) return `it would remove all ${held} ${noun}`
  if (removed <= limits.count || removed <= held * limits.fraction) return null
  const percent = ((100 * removed) / held).toFixed(1)
  return (
    `it would remove ${removed} of ${held} ${noun} (${percent} %), more than ${limits.count} and more than ` +
    `${limits.fraction * 100} %`
  )
}
