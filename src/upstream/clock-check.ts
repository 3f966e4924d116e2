import { duration, readHttpDate } from '../base/time.ts'
import type { RawAnswer } from './http/transport.ts'

/** Compares the dates of responses with the local clock. */
export type ClockWatch = ReturnType<typeof createClockWatch>

/** Tolerated difference, milliseconds; it does not affect runs. */
export const TOLERATED_MS = 120_000
/**
 * Maximum change between two differences that both show a wrong clock, milliseconds; a cached response differs by its
 * own age instead.
 */
const SAME_MS = 30_000

/**
 * Warns once when this machine's clock differs from upstream's `Date`: ages, schedules and signatures depend on it.
 * Responses from a cache (`Age`) are ignored.
 */
export function createClockWatch(warn: (text: string) => void) {
  let last: number | null = null
  let warned = false
  return {
    /** Checks the response to a request sent at `sentAt` and received at `now`, unix milliseconds. */
    observe(headers: RawAnswer['headers'], sentAt: number, now: number): void {
      const ahead = clockDifference(headers, sentAt, now)
      if (ahead === null) return
      if (Math.abs(ahead) <= TOLERATED_MS) {
        last = null
        warned = false
        return
      }
      const again = last !== null && Math.abs(ahead - last) <= SAME_MS
      last = ahead
      if (!again || warned) return
      warned = true
      warn(`${describeClock(ahead)}. Set the clock (NTP).`)
    },
  }
}

/**
 * Returns by how many milliseconds upstream's clock is ahead of this machine's, 0 within the time of the request; null for
 * a response without a date, or from a cache (`Age`).
 */
export function clockDifference({ date, age }: RawAnswer['headers'], sentAt: number, now: number): number | null {
  const at = typeof date === 'string' ? readHttpDate(date) : null
  if (at === null || (age !== undefined && age !== '0')) return null
  return at > now ? at - now : Math.min(0, at + 1000 - sentAt) // a Date has whole seconds
}

/** Says how far this machine's clock is off, and what depends on it; without a period at the end. */
export function describeClock(ahead: number): string {
  const off = duration(Math.round(Math.abs(ahead) / 60_000) * 60)
  return (
    `the clock of this machine is ${off} ${ahead > 0 ? 'behind' : 'ahead of'} upstream's ` +
    '(its Date header): ages, schedules and webhook signatures depend on it'
  )
}
