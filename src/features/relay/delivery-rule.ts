import { DAY_MS, readRetryAfter } from '../../base/time.ts'
/** A target's response, or why there is none. */
export type TargetResponse =
  | { readonly status: number; readonly retryAfter: string | null }
  /** Nothing was sent: the event is worth no message. */
  | { readonly skipped: true }
  /** No response: the reason in a word or two. */
  | { readonly failure: string }

/** The result of an attempt for the delivery and its target. Times are Unix milliseconds. */
type DeliveryOutcome =
  | { readonly kind: 'done' | 'skipped' }
  /** The target is gone permanently: it gets no further events. */
  | { readonly kind: 'disabled'; readonly reason: string }
  | {
      readonly kind: 'retry'
      readonly reason: string
      readonly dueAt: number
      /** Nothing is sent to the target before this time; null: it refused only this event. */
      readonly targetDueAt: number | null
    }

/** The inputs of the next attempt's time. */
interface Attempted {
  /** Consecutive failures before this attempt: of the delivery, and of its target. */
  readonly attempts: number
  readonly targetFailures: number
  readonly now: number
  /** In [0, 1). */
  readonly random: number
}

/** Statuses below 500 that concern the target or are temporary, and do not concern the event. */
const TARGET_STATUSES: ReadonlySet<number> = new Set([401, 403, 404, 405, 407, 408, 421, 425, 429])

/**
 * Decides about a delivery: 2xx is done, 410 disables the target, everything else, redirects included, is retried with
 * growing pauses. A 4xx about the event delays only that delivery.
 */
export function outcomeOf(
  answer: TargetResponse,
  { attempts, targetFailures, now, random }: Attempted,
): DeliveryOutcome {
  if ('skipped' in answer) return { kind: 'skipped' }
  const status = 'status' in answer ? answer.status : null
  if (status !== null && status >= 200 && status < 300) return { kind: 'done' }
  const reason = 'failure' in answer ? answer.failure : describe(answer.status)
  if (status === 410) return { kind: 'disabled', reason }
  const requested = 'retryAfter' in answer ? readRetryAfter(answer.retryAfter, now) : null
  const dueAt = now + pauseAfter(attempts + 1, random, requested)
  const own = status !== null && status >= 400 && status < 500 && !TARGET_STATUSES.has(status)
  const targetDueAt = own ? null : now + pauseAfter(targetFailures + 1, random, requested)
  return { kind: 'retry', reason, dueAt, targetDueAt }
}

function describe(status: number): string {
  if (status >= 300 && status < 400) return `it answered ${status}: redirects are not followed`
  return `it answered ${status}`
}

/**
 * Pauses after the first, second, … consecutive failure, seconds; the last one repeats. With them four days have 20
 * attempts.
 */
const PAUSES = [5, 30, 120, 600, 1800, 3600, 7200, 14_400, 21_600]

/** The longest `Retry-After` that is respected, milliseconds: one day. */
const LONGEST_RETRY_AFTER_MS = DAY_MS

/** The longest pause, milliseconds. */
export const LONGEST_PAUSE_MS = Math.max(LONGEST_RETRY_AFTER_MS, ...PAUSES.map((pause) => pause * 1250))

/**
 * Reports whether a stored time is due, Unix milliseconds. A time further ahead than the longest pause was stored before
 * the clock went backwards, and is due too.
 */
export function isDue(at: number, now: number, longestMs: number): boolean {
  return at <= now || at > now + longestMs
}

/**
 * Returns the pause after `failures` in a row, milliseconds: growing, and randomized by a quarter, so that deliveries
 * that failed together are not retried together. `random` is in [0, 1). The target's `Retry-After` can lengthen it only.
 */
export function pauseAfter(failures: number, random: number, requestedMs: number | null): number {
  const step = PAUSES[Math.min(failures, PAUSES.length) - 1] ?? PAUSES[0] ?? 0
  const pause = step * 1000 * (0.75 + random / 2)
  return Math.round(Math.max(pause, Math.min(requestedMs ?? 0, LONGEST_RETRY_AFTER_MS)))
}
