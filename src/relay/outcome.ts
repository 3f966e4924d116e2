import { pauseAfter, readRetryAfter } from './backoff.ts'

/** What a target answered, or why it did not. */
export type TargetResponse =
  | { readonly status: number; readonly retryAfter: string | null }
  /** No answer: one plain word or two for why. */
  | { readonly failure: string }

/** What becomes of a delivery after an attempt, and of its target. Times are unix milliseconds. */
export type DeliveryOutcome =
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
export interface Attempted {
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
