import type { Waiting } from './waiting.ts'

/** When to look again for what was announced, milliseconds after the first refresh that should have shown it. */
export const LOOKS_MS: readonly number[] = [5_000, 30_000, 120_000, 600_000]

/** Pauses after failed refreshes, milliseconds: each twice the one before. */
const FIRST_PAUSE_MS = 5_000
const LONGEST_PAUSE_MS = 600_000
/** The first seven tries take a quarter of an hour, the others ten minutes each: a day in all. */
export const MAX_ATTEMPTS = 150

/** What is to be written of a row; what is not named stays as it is. */
export interface Settled {
  readonly id: number
  readonly state: 'pending' | 'done' | 'dead'
  readonly refreshedAt?: number
  readonly visibleAt?: number
  readonly attempts?: number
  readonly dueAt?: number
  readonly reason?: string | null
}

/** A refresh failed that covered the row: it is tried again, later and later, and given up after about a day. */
export function afterFailure(row: Waiting, why: string, now: number, random: number): Settled {
  const attempts = row.attempts + 1
  const reason = `the refresh failed: ${why}`
  if (attempts < MAX_ATTEMPTS) {
    return {
      id: row.id,
      state: 'pending',
      attempts,
      dueAt: now + pauseMs(attempts, random),
      reason,
    }
  }
  return { id: row.id, state: 'dead', attempts, reason: `given up after ${attempts} tries: ${why}` }
}

/** Milliseconds until the next try; `random` in [0, 1) spreads it by a quarter to each side. */
export function pauseMs(attempts: number, random: number): number {
  const pause = Math.min(LONGEST_PAUSE_MS, FIRST_PAUSE_MS * 2 ** Math.min(attempts - 1, 20))
  return Math.round(pause * (0.75 + random / 2))
}

/**
 * A refresh succeeded that covered the row. `visible` null: the event names nothing that could be looked for, so the
 * refresh is all there is to do. What is not visible is looked for again, at the times above, and then given up.
 */
export function afterRefresh(row: Waiting, visible: boolean | null, now: number): Settled {
  const refreshedAt = row.refreshedAt ?? now
  const done = { id: row.id, state: 'done', refreshedAt, reason: null } as const
  if (visible === null) return done
  if (visible) return { ...done, visibleAt: now }
  const next = LOOKS_MS.find((after) => refreshedAt + after > now)
  if (next === undefined) return { id: row.id, state: 'dead', refreshedAt, reason: NEVER_LISTED }
  const reason = 'not visible yet: upstream does not list what it announced'
  return { id: row.id, state: 'pending', refreshedAt, dueAt: refreshedAt + next, reason }
}

const NEVER_LISTED =
  'upstream never listed it: what was announced was not to be seen ten minutes after the refresh'
