import type { RawAnswer } from './http/transport.ts'

/** Looks at the dates of answers. */
export interface ClockWatch {
  /** An answer to a request that was sent at `sentAt` and came at `now`, unix milliseconds. */
  observe(headers: RawAnswer['headers'], sentAt: number, now: number): void
}

/** A difference that no run suffers from, milliseconds. */
const TOLERATED_MS = 120_000
/** Two answers that differ from our clock by the same show a clock; a cached answer differs by its own age. */
const SAME_MS = 30_000

/**
 * Warns once when this machine's clock is off against upstream's `Date`: dates, ages and signatures are judged by it. Answers
 * of a cache (`Age`) tell nothing.
 */
export function createClockWatch(warn: (text: string) => void): ClockWatch {
  let last: number | null = null
  let warned = false
  return {
    observe(headers, sentAt, now) {
      const { date, age } = headers
      const at = typeof date === 'string' ? Date.parse(date) : Number.NaN
      if (Number.isNaN(at) || (age !== undefined && age !== '0')) return
      const ahead = at > now ? at - now : Math.min(0, at + 1000 - sentAt) // a Date has whole seconds
      if (Math.abs(ahead) <= TOLERATED_MS) {
        last = null
        warned = false
        return
      }
      const again = last !== null && Math.abs(ahead - last) <= SAME_MS
      last = ahead
      if (!again || warned) return
      warned = true
      const minutes = Math.round(Math.abs(ahead) / 60_000)
      const text = `the clock of this machine is ${minutes} minutes ${ahead > 0 ? 'behind' : 'ahead of'} that of upstream`
      warn(
        `${text} (its Date header): ages, schedules and webhook signatures go by it. Set the clock (NTP).`,
      )
    },
  }
}
