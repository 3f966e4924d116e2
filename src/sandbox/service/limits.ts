import { ServiceError } from './call.ts'

/** How many requests a surface takes per window. */
export interface RateLimit {
  requests: number
  windowSeconds: number
}

/** Counts a request; gives the headers for its answer, or throws a 429 that carries them. */
export type Limiter = () => Record<string, string>

/** The identity surface's tiers, requests a minute (service API, section 8). */
export const TIERS = { free: 100, standard: 1000, enterprise: 10_000 } as const

/** Fixed windows by the given clock, the first one from the first request on. Without a limit: no headers. */
export function createLimiter(limit: RateLimit | undefined, now: () => number): Limiter {
  if (limit === undefined) return () => ({})
  const length = limit.windowSeconds * 1000
  let start = Number.NEGATIVE_INFINITY
  let used = 0
  return () => {
    const time = now()
    if (time >= start + length) {
      start = time
      used = 0
    }
    used++
    const headers = {
      'X-RateLimit-Limit': String(limit.requests),
      'X-RateLimit-Remaining': String(Math.max(0, limit.requests - used)),
    }
    if (used <= limit.requests) return headers
    const wait = Math.max(1, Math.ceil((start + length - time) / 1000))
    throw new ServiceError(429, `rate limit exceeded: wait ${wait} s`, 'too_many_requests', {
      ...headers,
      'Retry-After': String(wait),
    })
  }
}
