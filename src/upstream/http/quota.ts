/** What is known of one host's rate limit; times in unix milliseconds. Changed in place by the functions below. */
interface Quota {
  /** Requests allowed in a window, and left in this one, as the service told last; null: it told nothing. */
  limit: number | null
  remaining: number
  /** How long a window is: a minute until an answer shows otherwise. */
  windowMs: number
  resetAt: number
  /** When this window began, if that was seen. */
  beganAt: number | null
  /** Nothing may be sent before: Retry-After. */
  blockedUntil: number
  /** When the crawl sent last. */
  crawledAt: number
  inFlight: number
  /** The most that were in flight: answers may overtake each other by as many. */
  peak: number
}

/** `crawl` spreads its requests and leaves the reserve; `ops`, a person who waits, may use all there is. */
export type Priority = 'crawl' | 'ops'

/** The part of a window that the crawl leaves to others: people, other programs, another mirror. */
const RESERVE = 0.1
const MINUTE_MS = 60_000
const LONGEST_WINDOW_MS = 3_600_000

/** A quota of which nothing is known yet. */
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

/** How long to wait before sending, milliseconds; 0: now. */
export function waitFor(quota: Quota, priority: Priority, now: number): number {
  const blocked = quota.blockedUntil - now
  if (blocked > 0) return blocked
  if (quota.limit === null || now >= quota.resetAt) return 0
  const left = quota.resetAt - now
  const usable = quota.remaining - (priority === 'crawl' ? Math.floor(quota.limit * RESERVE) : 0)
  if (usable <= 0) return left
  // The first half is free, so that a short walk is quick; the rest is spread over what is left of the window.
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

/** What an answer says of the limit: its status and headers. */
export interface QuotaHeaders {
  status: number
  headers: Record<string, string | string[] | undefined>
}

/** Takes over what an answer says (spec section 8). `retryAfterMs` is its Retry-After, when it has one. */
export function learn(
  quota: Quota,
  told: QuotaHeaders,
  retryAfterMs: number | null,
  now: number,
): void {
  const limit = count(told.headers['x-ratelimit-limit'])
  const left = count(told.headers['x-ratelimit-remaining'])
  if (limit !== null && limit > 0) quota.limit ??= limit
  if (left !== null && quota.limit !== null) {
    if (limit !== null && limit > 0) quota.limit = limit
    learnWindow(quota, left, resetOf(told.headers['x-ratelimit-reset'], now), now)
  }
  if (told.status !== 429 || retryAfterMs === null) return
  quota.blockedUntil = Math.max(quota.blockedUntil, now + retryAfterMs)
  if (quota.limit === null) return
  if (quota.beganAt !== null) quota.windowMs = bounded(quota.blockedUntil - quota.beganAt)
  quota.remaining = 0
  quota.resetAt = quota.blockedUntil
}

/** A count that rises by more than answers can overtake each other is a new window's. */
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

/** The number that a header begins with: `100`, or `100, 100;w=60`. */
function count(value: string | string[] | undefined): number | null {
  const digits = typeof value === 'string' ? /^\s*(\d{1,9})\b/.exec(value)?.[1] : undefined
  return digits === undefined ? null : Number(digits)
}

/** X-RateLimit-Reset comes as seconds from now, or as unix seconds or milliseconds. */
function resetOf(value: string | string[] | undefined, now: number): number | null {
  const number = typeof value === 'string' && /^\d{1,14}$/.test(value.trim()) ? Number(value) : null
  if (number === null) return null
  const at = number > 1e11 ? number : number > 1e8 ? number * 1000 : now + number * 1000
  return at > now && at <= now + LONGEST_WINDOW_MS * 24 ? at : null
}
