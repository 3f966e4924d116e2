import { choice } from '../kinds/base.ts'
import { mapOf, parseDays, parseLimit, shareAndCount, span } from '../kinds/maps.ts'

/** Settings of the guard against changes that can hide a finding: what it does, and from how many on. */
export const GUARD = {
  guard: {
    mode: choice(['off', 'warn', 'enforce'], 'enforce'),
    limit: mapOf({ changed: shareAndCount(), removed: shareAndCount() }, '{ removed: 10% and 20 }'),
    window: span(90, '7d'),
  },
}

/** Reads the limits and the window as figures; shares are from 0 to 1. What is missing in an edited default.yaml never counts as exceeded. */
export function guardFigures(guard: {
  readonly limit: { readonly changed?: string; readonly removed?: string }
  readonly window: string
}) {
  const changed = parseLimit(guard.limit.changed ?? '') ?? NEVER
  const removed = parseLimit(guard.limit.removed ?? '') ?? NEVER
  return {
    limitShare: changed.share,
    limitCount: changed.count,
    removedShare: removed.share,
    removedCount: removed.count,
    windowDays: parseDays(guard.window) ?? 0,
  }
}

const NEVER = { share: 1, count: 0 }
