/** Pauses after the first, second, … failure in a row, in seconds; the last one repeats. With them four days hold 20 attempts. */
const PAUSES = [5, 30, 120, 600, 1800, 3600, 7200, 14_400, 21_600]

/** The longest `Retry-After` that is kept to: longer ones mean no more than "not today". */
const LONGEST_WISH_MS = 86_400_000

/** No pause is longer, in milliseconds. */
export const LONGEST_PAUSE_MS = Math.max(LONGEST_WISH_MS, ...PAUSES.map((pause) => pause * 1250))

/**
 * Whether a stored time has come, unix milliseconds. One that lies further ahead than what was waited for can be at most
 * was written before the clock was set back, and has come as well.
 */
export function isDue(at: number, now: number, longestMs: number): boolean {
  return at <= now || at > now + longestMs
}

/**
 * How long to wait after `failures` in a row, in milliseconds: growing, and a quarter more or less at random, so that what
 * failed together does not come back together. `random` is in [0, 1). A wish of the target's makes it longer, never shorter.
 */
export function pauseAfter(failures: number, random: number, wishMs: number | null): number {
  const step = PAUSES[Math.min(failures, PAUSES.length) - 1] ?? PAUSES[0] ?? 0
  const pause = step * 1000 * (0.75 + random / 2)
  return Math.round(Math.max(pause, Math.min(wishMs ?? 0, LONGEST_WISH_MS)))
}

/** What `Retry-After` asks for, in milliseconds from now; null when it says nothing that can be understood. */
export function readRetryAfter(value: string | null, now: number): number | null {
  if (value === null) return null
  const text = value.trim()
  if (/^\d{1,10}$/.test(text)) return Number(text) * 1000
  const date = /[a-z]/i.test(text) ? Date.parse(text) : Number.NaN
  return Number.isNaN(date) ? null : Math.max(0, date - now)
}
