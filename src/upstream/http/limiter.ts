import { type Priority, type QuotaHeaders, learn, take, unknownQuota, waitFor } from './quota.ts'
import { limitError, parseRetryAfter } from './errors.ts'

/** Leave to send one request; told how it ended, once. */
interface LimiterTurn {
  answered(told: QuotaHeaders): void
  failed(): void
}

/** Spaces the requests to one host, whichever surface and run they belong to. */
export interface HostLimiter {
  /**
   * Waits until a request may be sent. Throws `upstream_status` at once when that is longer away than the ceiling,
   * and the signal's reason when it is given.
   */
  acquire(signal: AbortSignal, priority: Priority): Promise<LimiterTurn>
}

/** What a limiter works with. The clock and the delay are arguments, so that tests are exact. */
interface LimiterDeps {
  /** For messages. */
  host: string
  /** A limit known beforehand, requests a minute (the identity tier); null: only what answers tell. */
  perMinute: number | null
  /** The longest wait for room that is waited for, milliseconds. */
  maxWaitMs: number
  /** A longer Retry-After ends the run that got it, and is no matter of the limiter: a later run asks again. */
  maxRetryAfterMs: number
  now: () => number
  delay: (ms: number, signal: AbortSignal) => Promise<void>
}

/** A rate limiter of one host. Without a tier it slows nothing until an answer tells of a limit (spec section 8). */
export function createLimiter(deps: LimiterDeps): HostLimiter {
  const { host, maxWaitMs, now, delay } = deps
  const quota = unknownQuota()
  const pace = createPace(deps.perMinute)
  return {
    async acquire(signal, priority) {
      for (;;) {
        signal.throwIfAborted()
        const wait = Math.max(waitFor(quota, priority, now()), pace.waitFor(priority, now()))
        if (wait <= 0) break
        if (wait > maxWaitMs) throw limitError(host, wait)
        await delay(Math.ceil(wait), signal)
      }
      take(quota, priority, now())
      pace.take(now())
      return {
        answered(told) {
          quota.inFlight--
          const asked = parseRetryAfter(told.headers['retry-after'], now)
          const known = asked !== null && asked <= deps.maxRetryAfterMs ? asked : null
          learn(quota, told, known, now())
        },
        failed() {
          quota.inFlight--
        },
      }
    },
  }
}

/** Requests a minute that the crawl may send of what a tier allows, and how many of them at once. */
const STEADY = 0.8
const BURST = 0.1

/**
 * An even pace under a limit that no answer need tell of: in whichever minute the service counts, a tenth is left.
 */
function createPace(perMinute: number | null): {
  waitFor(priority: Priority, now: number): number
  take(now: number): void
} {
  if (perMinute === null) return { waitFor: () => 0, take: () => undefined }
  const interval = 60_000 / (perMinute * STEADY)
  const slack = interval * (Math.max(1, perMinute * BURST) - 1)
  let due = 0
  return {
    waitFor: (priority, now) => (priority === 'ops' ? 0 : Math.max(0, due - slack - now)),
    take: (now) => void (due = Math.max(due, now) + interval),
  }
}
