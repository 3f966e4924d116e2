import { describe, expect, test } from 'vitest'
import { type ClockReading, planStarts, watchSteps } from '../../../src/sync/planning/plan.ts'
import { type Starts, readStarts } from '../../../src/sync/planning/starts.ts'
import { createZone } from '../../../src/sync/planning/zone.ts'
import { type Dice, createDice } from '../../support/dice.ts'

const SECOND = 1000
const MINUTE = 60 * SECOND
const HOUR = 60 * MINUTE
const DAY = 24 * HOUR
const JITTER = 60 * SECOND
/** What the plan may be late by: a look each two seconds, and the patience with a clock that is slower. */
const SLACK = 15 * SECOND

/** Days on which clocks change, in zones with rules of their own, and one on which they do not; with a time within the change. */
const DAYS = [
  ['Europe/Berlin', '2026-03-28T20:00:00Z', '30 2 * * *'],
  ['Europe/Berlin', '2026-10-24T20:00:00Z', '30 2 * * *'],
  ['America/New_York', '2026-03-08T02:00:00Z', '30 2 * * *'],
  ['America/New_York', '2026-11-01T02:00:00Z', '30 1 * * *'],
  ['Australia/Lord_Howe', '2026-10-03T10:00:00Z', '10 2 * * *'],
  ['Australia/Lord_Howe', '2026-04-04T10:00:00Z', '45 1 * * *'],
  ['Africa/Casablanca', '2026-03-21T20:00:00Z', '30 2 * * *'],
  ['America/Santiago', '2026-04-04T20:00:00Z', '30 23 * * *'],
  ['America/Santiago', '2026-09-05T20:00:00Z', '30 0 * * *'],
  ['UTC', '2026-05-04T20:00:00Z', '30 2 * * *'],
] as const

/** A start of a job: at which time of day, and how much time had passed, the machine's sleep included. */
interface Begun {
  readonly wall: number
  readonly passed: number
}

interface History {
  readonly begun: Begun[]
  /** By how much the clock was set back, together, milliseconds. */
  readonly back: number
  /** The longest time without a look, milliseconds. */
  readonly blind: number
}

/** Lives 24 hours with a plan: looks every two seconds, and now and then is late, asleep, or has its clock set. */
function live(starts: Starts, from: number, dice: Dice, mayStep: boolean): History {
  let moment: ClockReading = { wall: from, elapsed: 0 }
  let passed = 0
  let blind = 2 * SECOND
  const plan = planStarts(starts, moment, () => dice(JITTER))
  const steps = watchSteps(moment)
  const begun: Begun[] = []
  let back = 0
  const goOn = (wall: number, elapsed: number): void => {
    moment = { wall: moment.wall + wall, elapsed: moment.elapsed + elapsed }
    if (steps.step(moment) < 0) plan.setBack(moment)
    if (plan.take(moment) !== null) begun.push({ wall: moment.wall, passed })
  }
  const pass = (ms: number, elapsed: number): void => {
    passed += ms
    blind = Math.max(blind, ms)
    goOn(ms, elapsed)
  }
  while (passed < DAY) {
    const event = dice(3000)
    if (event === 0) {
      const late = dice(10 * MINUTE)
      pass(late, late) // the process is stopped
    } else if (event === 1) {
      pass(dice(3 * HOUR), 0) // the machine is suspended
    } else if (event === 2 && mayStep) {
      const by = (dice(2) === 0 ? 1 : -1) * dice([SECOND * 30, HOUR, 3 * HOUR][dice(3)] ?? HOUR)
      back += Math.max(0, -by)
      goOn(by, 0)
    } else {
      pass(2 * SECOND, 2 * SECOND)
    }
  }
  return { begun, back, blind }
}

const SEEDS = Array.from({ length: 12 }, (_, n) => n + 1)
const ELAPSED = [
  ['*/15 * * * *', 15 * MINUTE],
  ['7 * * * *', HOUR],
  ['7 */2 * * *', 2 * HOUR],
] as const

/** The time between two starts, and until the first and after the last, milliseconds. */
function gapsOf(begun: readonly Begun[]): number[] {
  const at = [...begun.map(({ passed }) => passed), DAY]
  return at.map((one, n) => one - (at[n - 1] ?? 0))
}

describe.each(DAYS)('a day in %s from %s, with late looks and a machine that sleeps,', (name, day, fixed) => {
  const zone = createZone(name)
  const from = Date.parse(day)

  test('has each start of a schedule of hours, none of them twice', () => {
    for (const seed of SEEDS)
      for (const [expression, interval] of ELAPSED) {
        const starts = readStarts(expression, zone)
        const { begun, blind } = live(starts, from, createDice(seed), false)
        const what = `${expression}, seed ${seed}`
        const most = interval + JITTER + blind + SLACK
        expect(Math.max(...gapsOf(begun)), what).toBeLessThanOrEqual(most)
        for (const [n, { wall }] of begun.entries()) {
          const before = begun[n - 1]?.wall ?? -Infinity
          // A time of its own has come since the one before.
          if (n > 0) expect(starts.after(before - JITTER), what).toBeLessThanOrEqual(wall)
        }
        expect(new Set(begun.map(({ wall }) => wall)).size, what).toBe(begun.length)
      }
  })

  test('has a start of a schedule of hours at most an interval later however the clock is set', () => {
    for (const seed of SEEDS)
      for (const [expression, interval] of ELAPSED) {
        const { begun, blind } = live(readStarts(expression, zone), from, createDice(seed), true)
        // A start that was made just before is not made again: by so much later may the next one be.
        const again = 5 * MINUTE
        const most = interval + JITTER + blind + SLACK + again
        expect(Math.max(...gapsOf(begun)), `${expression}, seed ${seed}`).toBeLessThanOrEqual(most)
      }
  })

  test('has one start at a fixed time, also when the clock is set back by up to three hours', () => {
    for (const mayStep of [false, true])
      for (const seed of SEEDS) {
        const { begun, back } = live(readStarts(fixed, zone), from, createDice(seed), mayStep)
        const dates = begun.map(({ wall }) => new Date(wall + zone(wall)).toISOString().slice(0, 10))
        const what = `seed ${seed}, steps ${mayStep}: ${dates.join()}`
        expect(begun.length, what).toBeGreaterThanOrEqual(1)
        if (back < 3 * HOUR - JITTER) expect(new Set(dates).size, what).toBe(dates.length)
      }
  })
})
