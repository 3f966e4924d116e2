/** What a target answered, or why it did not. */
export type TargetResponse =
  | { readonly status: number; readonly retryAfter: string | null }
  /** No answer: one plain word or two for why. */
  | { readonly failure: string }

/** What becomes of a delivery after an attempt, and of its target. Times are unix milliseconds. */
type DeliveryOutcome =
  | { readonly kind: 'done' }
  /** The target said that it is gone for good: it gets nothing more. */
  | { readonly kind: 'disabled'; readonly reason: string }
  | {
      readonly kind: 'retry'
      readonly reason: string
      readonly dueAt: number
      /** The target as a whole has to be left alone until then; null: it refused this one event, others may pass. */
      readonly targetDueAt: number | null
    }

/** What the next attempt is reckoned from. */
interface Attempted {
  /** Failures in a row before this attempt: of the delivery, of its target. */
  readonly attempts: number
  readonly targetFailures: number
  readonly now: number
  /** In [0, 1). */
  readonly random: number
}

/** Statuses below 500 that are about the target, or the moment, and not about what was sent. */
const PASSING: ReadonlySet<number> = new Set([401, 403, 404, 405, 407, 408, 421, 425, 429])

/**
 * The rule of delivery: 2xx is done, 410 disables the target, everything else, redirects included, is tried again with
 * growing pauses. A 4xx about what was sent holds up that one delivery alone.
 */
export function outcomeOf(
  answer: TargetResponse,
  { attempts, targetFailures, now, random }: Attempted,
): DeliveryOutcome {
  const status = 'status' in answer ? answer.status : null
  if (status !== null && status >= 200 && status < 300) return { kind: 'done' }
  const reason = 'failure' in answer ? answer.failure : describe(answer.status)
  if (status === 410) return { kind: 'disabled', reason }
  const wish = 'retryAfter' in answer ? readRetryAfter(answer.retryAfter, now) : null
  const dueAt = now + pauseAfter(attempts + 1, random, wish)
  const own = status !== null && status >= 400 && status < 500 && !PASSING.has(status)
  const targetDueAt = own ? null : now + pauseAfter(targetFailures + 1, random, wish)
  return { kind: 'retry', reason, dueAt, targetDueAt }
}

function describe(status: number): string {
  if (status >= 300 && status < 400) return `it answered ${status}: redirects are not followed`
  return `it answered ${status}`
}

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
