import { describe, expect } from 'vitest'
import { readCron } from '../../../src/sync/planning/cron.ts'
import { readStarts } from '../../../src/sync/planning/starts.ts'
import { createZone } from '../../../src/sync/planning/zone.ts'
import { bothTest, longTest, telling, test } from '../../support/tables.ts'

const MINUTE = 60_000
const HOUR = 60 * MINUTE
const DAY = 24 * HOUR

/** Zones with rules of their own, and a day on which clocks go forward and one on which they go back. */
const ZONES = [
  { name: 'Europe/Berlin', forward: '2026-03-29', back: '2026-10-25' },
  { name: 'America/New_York', forward: '2026-03-08', back: '2026-11-01' },
  { name: 'Australia/Lord_Howe', forward: '2026-10-04', back: '2026-04-05' }, // by 30 minutes
  { name: 'Africa/Casablanca', forward: '2026-03-22', back: '2026-02-15' }, // around Ramadan
  { name: 'America/Santiago', forward: '2026-09-06', back: '2026-04-04' }, // at midnight
  { name: 'Africa/Cairo', forward: '2026-04-24', back: '2026-10-29' }, // at midnight, on a Thursday
] as const

/** Returns the starts of a local day and of a quarter of the days before and after it, Unix milliseconds. */
function startsAround(expression: string, zone: string, day: string): number[] {
  const offset = createZone(zone)
  const { after } = readStarts(expression, offset)
  const found: number[] = []
  const noon = Date.parse(`${day}T12:00:00Z`) - offset(Date.parse(`${day}T12:00:00Z`))
  const end = noon + 0.75 * DAY
  for (let at = after(noon - 0.75 * DAY); at !== null && at < end; at = after(at)) found.push(at)
  return found
}

/** Returns the local day and time of an instant, as '2026-03-29 03:00'. */
function localTime(at: number, zone: string): string {
  return new Date(at).toLocaleString('sv-SE', { timeZone: zone }).slice(0, 16)
}

const intervals = (starts: readonly number[]): number[] => starts.slice(1).map((at, n) => at - (starts[n] ?? at))

const DAYS = ZONES.flatMap(({ name, forward, back }) => [
  [`${name} forward`, name, forward, 1] as const,
  [`${name} back`, name, back, -1] as const,
])
const FEW = ['Europe/Berlin back', 'Australia/Lord_Howe forward']

describe.each(telling(DAYS, ...FEW))('when clocks change in %s,', (_what, name, day, way) => {
  bothTest('the clocks change', () => {
    const zone = createZone(name)
    const at = Date.parse(`${day}T00:00:00Z`)
    const by = zone(at + 2 * DAY) - zone(at - DAY)
    expect(Math.sign(by)).toBe(way)
  })

  longTest('a schedule of hours goes on without a longer interval, and never starts twice at once', () => {
    for (const [expression, longest] of [
      ['*/10 * * * *', 10 * MINUTE],
      ['7 * * * *', HOUR],
      ['7 0-23 * * *', HOUR],
      ['0 */2 * * *', 2 * HOUR],
      ['30 1-23/2 * * *', 2 * HOUR],
    ] as const) {
      const between = intervals(startsAround(expression, name, day))
      expect(Math.max(...between), expression).toBe(longest)
      expect(Math.min(...between), expression).toBeGreaterThanOrEqual(Math.min(longest, HOUR / 2))
    }
  })

  bothTest('each fixed time of day comes once on each day', () => {
    const clock = Array.from({ length: 48 }, (_, n) => [Math.floor(n / 2), (n % 2) * 30 + 7])
    for (const [hour, minute] of clock) {
      const starts = startsAround(`${minute} ${hour} * * *`, name, day)
      const on = starts.map((at) => localTime(at, name).slice(0, 10)).filter((one) => one === day)
      expect(on, `${hour}:${minute}`).toEqual([day])
    }
  })
})

describe('the starts of an expression', () => {
  const berlin = createZone('Europe/Berlin')
  const first = (expression: string, from: string): string | null => {
    const at = readStarts(expression, berlin).after(Date.parse(from))
    return at === null ? null : localTime(at, 'Europe/Berlin')
  }

  test('are at the end of the hour that is left out, and the first time in the one that comes twice', () => {
    expect(first('30 2 * * *', '2026-03-28T12:00:00Z')).toBe('2026-03-29 03:00')
    expect(readStarts('30 2 * * *', berlin).after(Date.parse('2026-10-24T12:00:00Z'))).toBe(
      Date.parse('2026-10-25T00:30:00Z'),
    )
    expect(first('30 2 * * *', '2026-10-25T00:30:00Z')).toBe('2026-10-26 02:30')
  })

  test('are the days that node-cron names: the last one, the second Monday, a leap day', () => {
    expect(first('0 5 L * *', '2026-02-10T00:00:00Z')).toBe('2026-02-28 05:00')
    expect(first('0 5 * * 1#2', '2026-02-10T00:00:00Z')).toBe('2026-03-09 05:00')
    expect(first('0 5 29 2 *', '2026-02-10T00:00:00Z')).toBe('2028-02-29 05:00')
    expect(first('@daily', '2026-02-10T00:00:00Z')).toBe('2026-02-11 00:00')
    expect(first('*/20 30 5 * * *', '2026-02-10T04:30:20Z')).toBe('2026-02-10 05:30')
  })

  test('go by elapsed time where the hours are a star or have a step', () => {
    const elapsed = ['* * * * *', '7 */2 * * *', '7 8-18/2 * * *', '@hourly', '0 7 * * * *']
    expect(elapsed.filter((one) => !readCron(one).isElapsed)).toEqual([])
    const fixed = ['7 3 * * *', '*/5 3 * * *', '7 8-18 * * *', '@daily', '0 7 3 * * *']
    expect(fixed.filter((one) => readCron(one).isElapsed)).toEqual([])
  })
})
