import { type Priority, type QuotaHeaders, learn, take, unknownQuota, waitFor } from './quota.ts'
import { readRetryAfter } from '../../base/time.ts'
import { limitError } from './errors.ts'

/** Permission to send one request; its owner reports the end exactly once. */
interface RequestPermit {
  answered(response: QuotaHeaders): void
  failed(): void
}

/** Limits the rate of requests to one host, of all surfaces and runs. */
export interface HostLimiter {
  /**
   * Waits until a request may be sent. Throws `upstream_status` immediately when the wait would exceed the ceiling,
   * and the signal's reason when it aborts.
   */
  acquire(signal: AbortSignal, priority: Priority): Promise<RequestPermit>
}

/** Dependencies of a limiter. Clock and delay are arguments, so that tests are exact. */
interface LimiterDeps {
  /** Host name for messages. */
  host: string
  /** Known limit, requests per minute (the identity tier); null: only the limits in responses apply. */
  perMinute: number | null
  /** Longest wait for permission, milliseconds. */
  maxWaitMs: number
  /**
   * Longest Retry-After that the limiter observes, milliseconds; a longer one ends the run that received it, and a
   * later run tries again.
   */
  maxRetryAfterMs: number
  now: () => number
  /** The time that elapses, milliseconds, by which pauses are counted: the time of day may be set meanwhile. */
  elapsed: () => number
  delay: (ms: number, signal: AbortSignal) => Promise<void>
}

/**
 * Creates a rate limiter of one host. Without a tier it delays nothing until a response contains a limit (spec
 * section 8).
 */
export function createLimiter(deps: LimiterDeps): HostLimiter {
  const { host, maxWaitMs, now, elapsed, delay } = deps
  const quota = unknownQuota()
  const pace = createPace(deps.perMinute)
  return {
    async acquire(signal, priority) {
      for (;;) {
        signal.throwIfAborted()
        const at = elapsed()
        const wait = Math.max(waitFor(quota, priority, at), pace.waitFor(priority, at))
        if (wait <= 0) break
        if (wait > maxWaitMs) throw limitError(host, wait)
        await delay(Math.ceil(wait), signal)
      }
      take(quota, priority, elapsed())
      pace.take(elapsed())
      return {
        answered(response) {
          quota.inFlight--
          const asked = readRetryAfter(response.headers['retry-after'], now()) ?? 0
          const known = asked > 0 && asked <= deps.maxRetryAfterMs ? asked : null
          learn(quota, response, known, elapsed(), now())
        },
        failed() {
          quota.inFlight--
        },
      }
    },
  }
}

/** Share of a tier's requests per minute that a crawl uses, and the share that it may send in one burst. */
const STEADY = 0.8
const BURST = 0.1

/**
 * Spaces requests evenly below a limit that responses need not contain: in any minute that the service counts, a crawl
 * leaves a tenth, which commands (`ops`) may use, and nothing exceeds it.
 */
function createPace(perMinute: number | null): {
  waitFor(priority: Priority, now: number): number
  take(now: number): void
} {
  if (perMinute === null) return { waitFor: () => 0, take: () => undefined }
  const paces = { crawl: createSteps(perMinute, STEADY), ops: createSteps(perMinute, 1 - BURST) }
  return {
    waitFor: (priority, now) => paces[priority === 'ops' ? 'ops' : 'crawl'].waitFor(now),
    take(now) {
      paces.crawl.take(now)
      paces.ops.take(now)
    },
  }
}

/** Spaces requests evenly at a share of a limit, after a burst. */
function createSteps(perMinute: number, share: number) {
  const interval = 60_000 / (perMinute * share)
  const slack = interval * (Math.max(1, perMinute * BURST) - 1)
  let due = 0
  return {
    waitFor: (now: number): number => Math.max(0, due - slack - now),
    take: (now: number): void => void (due = Math.max(due, now) + interval),
  }
}
