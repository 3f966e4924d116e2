/** Limits of the removal guard: a run that would remove more than both is quarantined (promise 5). */
interface GuardLimits {
  /** Share of the stored entries, 0 to 1. */
  fraction: number
  /** Number of entries. */
  count: number
}

/**
 * Returns the reason why a change needs operator approval, or null if it does not. Removing all entries always needs
 * approval: no source loses everything at once for a good reason.
 */
export function refuseRemoval(
  stored: number,
  removed: number,
  limits: GuardLimits,
  noun: string,
): string | null {
  if (stored > 0 && removed === stored) return `it would remove all ${stored} ${noun}`
  if (removed <= limits.count || removed <= stored * limits.fraction) return null
  const percent = ((100 * removed) / stored).toFixed(1)
  return (
    `it would remove ${removed} of ${stored} ${noun} (${percent} %), more than ${limits.count} and more than ` +
    `${limits.fraction * 100} %`
  )
}
