import { HOUR_MS } from '../../base/time.ts'
/**
 * Known state of one host's rate limit; times in milliseconds of a clock that cannot be set. Modified in place by the functions
 * below.
 */
interface Quota {
  /** Requests allowed per window and remaining in this one, from the last response; null: unknown. */
  limit: number | null
  remaining: number
  /** Length of a window; one minute until a response shows another. */
  windowMs: number
  resetAt: number
  /** Start of this window, if it was observed. */
  beganAt: number | null
  /** Nothing may be sent before this time (Retry-After). */
  blockedUntil: number
  /** Time of the crawl's last request. */
  crawledAt: number
  inFlight: number
  /** Maximum concurrent requests; responses can arrive out of order by as many. */
  peak: number
}

/** `crawl` spreads its requests and leaves the reserve; `ops`, an interactive command, may use all. */
export type Priority = 'crawl' | 'ops'

/** Share of a window that the crawl leaves to others: commands, other programs, another mirror. */
const RESERVE = 0.1
const MINUTE_MS = 60_000
const LONGEST_WINDOW_MS = HOUR_MS

/** Returns a quota with unknown limits. */
export function unknownQuota(): Quota {
  return {
    limit: null,
    remaining: 0,
    windowMs: MINUTE_MS,
    resetAt: 0,
    beganAt: null,
    blockedUntil: 0,
    crawledAt: 0,
    inFlight: 0,
    peak: 0,
  }
}

/** Returns the wait before sending, milliseconds; 0: send now. */
export function waitFor(quota: Quota, priority: Priority, now: number): number {
  const blocked = quota.blockedUntil - now
  if (blocked > 0) return blocked
  if (quota.limit === null || now >= quota.resetAt) return 0
  const left = quota.resetAt - now
  const usable = quota.remaining - (priority === 'crawl' ? Math.floor(quota.limit * RESERVE) : 0)
  if (usable <= 0) return left
  // The first half is not delayed, so that a short walk is quick; the rest is spread over the remaining window.
  if (priority === 'ops' || quota.remaining > quota.limit / 2) return 0
  return Math.max(0, quota.crawledAt + left / usable - now)
}

/** Counts a request that is sent now. */
export function take(quota: Quota, priority: Priority, now: number): void {
  if (quota.limit !== null && now >= quota.resetAt) beginWindow(quota, now + quota.windowMs)
  quota.remaining = Math.max(0, quota.remaining - 1)
  quota.inFlight++
  quota.peak = Math.max(quota.peak, quota.inFlight)
  if (priority === 'crawl') quota.crawledAt = now
}

function beginWindow(quota: Quota, resetAt: number): void {
  quota.remaining = quota.limit ?? 0
  quota.resetAt = resetAt
  quota.beganAt = null
}

/** Status and headers of a response, for the limit. */
export interface QuotaHeaders {
  status: number
  headers: Record<string, string | string[] | undefined>
}

/**
 * Updates the quota from a response (spec section 8). `retryAfterMs` is its Retry-After, if any; `wall` the time of day, Unix
 * milliseconds.
 */
export function learn(
  quota: Quota,
  response: QuotaHeaders,
  retryAfterMs: number | null,
  now: number,
  wall: number,
): void {
  const limit = count(response.headers['x-ratelimit-limit'])
  const left = count(response.headers['x-ratelimit-remaining'])
  if (limit !== null && limit > 0) quota.limit ??= limit
  if (left !== null && quota.limit !== null) {
    if (limit !== null && limit > 0) quota.limit = limit
    const resetAt = resetOf(response.headers['x-ratelimit-reset'], wall)
    learnWindow(quota, left, resetAt === null ? null : now + resetAt - wall, now)
  }
  if (response.status !== 429 || retryAfterMs === null) return
  quota.blockedUntil = Math.max(quota.blockedUntil, now + retryAfterMs)
  if (quota.limit === null) return
  if (quota.beganAt !== null) quota.windowMs = bounded(quota.blockedUntil - quota.beganAt)
  quota.remaining = 0
  quota.resetAt = quota.blockedUntil
}

/**
 * Updates the window: a remaining count that rises by more than out-of-order responses explain belongs to a new
 * window.
 */
function learnWindow(quota: Quota, left: number, resetAt: number | null, now: number): void {
  const running = now < quota.resetAt
  const risen = running && left > quota.remaining + quota.inFlight + quota.peak
  if (risen || !running) {
    if (risen && quota.beganAt !== null) quota.windowMs = bounded(now - quota.beganAt)
    beginWindow(quota, now + quota.windowMs)
    if (risen) quota.beganAt = now
  }
  if (resetAt !== null) quota.resetAt = resetAt
  quota.remaining = Math.max(0, left - quota.inFlight)
}

function bounded(ms: number): number {
  return Math.min(LONGEST_WINDOW_MS, Math.max(1000, ms))
}

/** Returns the number at the start of a header: `100`, or `100, 100;w=60`. */
function count(value: string | string[] | undefined): number | null {
  const digits = typeof value === 'string' ? /^\s*(\d{1,9})\b/.exec(value)?.[1] : undefined
  return digits === undefined ? null : Number(digits)
}

/** Parses X-RateLimit-Reset: seconds from now, or unix seconds or milliseconds. */
function resetOf(value: string | string[] | undefined, now: number): number | null {
  const number = typeof value === 'string' && /^\d{1,14}$/.test(value.trim()) ? Number(value) : null
  if (number === null) return null
  const at = timeMeant(number, now)
  return at > now && at <= now + LONGEST_WINDOW_MS * 24 ? at : null
}

/** Returns the unix milliseconds that a number means, by its size. */
function timeMeant(number: number, now: number): number {
  if (number > 1e11) return number
  if (number > 1e8) return number * 1000
  return now + number * 1000
}
