import { describe, expect, test } from 'vitest'
import { type ClockReading, planStarts, watchSteps } from '../../../src/sync/planning/plan.ts'
import { readStarts } from '../../../src/sync/planning/starts.ts'

const MINUTE = 60_000
const HOUR = 60 * MINUTE
const DAY = 24 * HOUR
const YEAR = 365 * DAY
const NOON = Date.parse('2026-05-04T12:00:00Z')
const utc = (): number => 0

/** A plan with clocks that go on, are set, and stand still, as a test says. */
function planned(expression: string, { from = NOON, delay = 0 } = {}) {
  const starts = readStarts(expression, utc)
  let moment: ClockReading = { wall: from, elapsed: 5000 }
  const plan = planStarts(starts, moment, () => delay)
  const steps = watchSteps(moment)
  const began: string[] = []
  const look = (): void => {
    if (steps.step(moment) < 0) plan.setBack(moment)
    if (plan.take(moment) !== null) began.push(new Date(moment.wall).toISOString().slice(5, 16))
  }
  return {
    began,
    /** Both clocks go on, and are looked at each second or each `every` milliseconds. */
    goOn(ms: number, every = 1000) {
      for (let gone = 0; gone < ms; gone += every) {
        moment = { wall: moment.wall + every, elapsed: moment.elapsed + every }
        look()
      }
    },
    /** The wall clock is set, or the machine was suspended. */
    step(ms: number) {
      moment = { ...moment, wall: moment.wall + ms }
      look()
    },
    /** The wall clock stands still. */
    stand(ms: number) {
      for (let gone = 0; gone < ms; gone += 2000) {
        moment = { ...moment, elapsed: moment.elapsed + 2000 }
        look()
      }
    },
    minutesToNext: () => ((plan.nextAt(moment) ?? Infinity) - moment.wall) / MINUTE,
  }
}

describe('a clock that is set back', () => {
  test.each([10 * MINUTE, 2 * HOUR, 30 * HOUR, 3 * YEAR])(
    'by %s ms leaves the next start of an hourly job at most an hour away, and it comes then',
    (by) => {
      const job = planned('7 * * * *')
      job.goOn(75 * MINUTE)
      expect(job.began).toEqual(['05-04T12:07', '05-04T13:07'])
      job.step(-by)
      const wait = job.minutesToNext()
      expect(wait).toBeLessThanOrEqual(60)
      job.goOn((wait - 1) * MINUTE)
      expect(job.began).toHaveLength(2)
      job.goOn(2 * MINUTE)
      expect(job.began).toHaveLength(3)
      expect(job.minutesToNext()).toBeLessThanOrEqual(60)
    },
  )

  test.each([2_000, 30_000, 3 * MINUTE])('by %s ms just after a start does not start the job twice', (by) => {
    for (const expression of ['7 * * * *', '7 12 * * *']) {
      const job = planned(expression)
      job.goOn(7 * MINUTE + 1000)
      job.step(-by)
      job.goOn(20 * MINUTE)
      expect(job.began, expression).toEqual(['05-04T12:07'])
    }
  })

  test('by an hour does not start what had its fixed time twice on that day', () => {
    const job = planned('7 12 * * *')
    job.goOn(30 * MINUTE)
    job.step(-HOUR)
    job.goOn(DAY + HOUR, 2000)
    expect(job.began).toEqual(['05-04T12:07', '05-05T12:07'])
  })

  test('from a year that was wrong starts fixed times at their time again', () => {
    const job = planned('7 12 * * *', { from: NOON + 4 * YEAR + DAY })
    job.goOn(10 * MINUTE)
    job.step(-4 * YEAR - DAY)
    expect(job.minutesToNext()).toBeLessThanOrEqual(24 * 60)
    job.goOn(DAY, 2000)
    expect(job.began).toHaveLength(2)
  })

  test('again and again, or stands still, does not hold an hourly job back for more than an hour', () => {
    const still = planned('7 * * * *')
    still.stand(6 * HOUR)
    expect(still.began.length).toBeGreaterThanOrEqual(6)
    const shaky = planned('7 * * * *')
    for (let n = 0; n < 24; n++) {
      shaky.goOn(15 * MINUTE, 2000)
      shaky.step(-14 * MINUTE)
    }
    expect(shaky.began.length).toBeGreaterThanOrEqual(5)
  })

  test('while a start waits for its delay keeps that start', () => {
    const job = planned('7 * * * *', { delay: 30_000 })
    job.goOn(7 * MINUTE + 10_000)
    job.step(-5000)
    job.goOn(MINUTE)
    expect(job.began).toEqual(['05-04T12:07'])
    expect(job.minutesToNext()).toBeCloseTo(59.9, 0)
  })
})

describe('a clock that goes on at once', () => {
  test('starts what was missed once, whether by seconds, hours or a century', () => {
    for (const by of [10_000, 9 * HOUR, 30 * DAY, 100 * YEAR]) {
      for (const expression of ['* * * * *', '7 12 * * *']) {
        const job = planned(expression, { from: NOON + 6 * MINUTE + 55_000 })
        job.step(by)
        expect(job.began, `${expression} ${by}`).toHaveLength(1)
        job.goOn(10_000)
        expect(job.began.length, `${expression} ${by}`).toBeLessThanOrEqual(2)
        expect(job.minutesToNext()).toBeLessThanOrEqual(24 * 60)
      }
    }
  })

  test('is asked for its next times a few times only, however far it went', () => {
    let asked = 0
    const hourly = readStarts('7 * * * *', utc)
    const after = (instant: number): number | null => {
      asked++
      return hourly.after(instant)
    }
    const plan = planStarts({ ...hourly, after }, { wall: NOON, elapsed: 0 }, () => 0)
    const due = plan.take({ wall: NOON + 50 * YEAR, elapsed: 2000 })
    expect(due).toEqual({ at: NOON + 7 * MINUTE, lateMs: 50 * YEAR - 7 * MINUTE, isMerged: true })
    expect(asked).toBeLessThan(6)
  })
})

test('a tick that comes late starts a job once, and says by how much it is late', () => {
  const plan = planStarts(readStarts('7 12 * * *', utc), { wall: NOON, elapsed: 0 }, () => 0)
  const elapsed = 7 * MINUTE + 3000
  expect(plan.take({ wall: NOON + elapsed, elapsed })).toEqual({
    at: NOON + 7 * MINUTE,
    lateMs: 3000,
    isMerged: false,
  })
  expect(plan.take({ wall: NOON + elapsed, elapsed })).toBeNull()
})

test('a clock that is made to run faster or slower is no step of it', () => {
  const steps = watchSteps({ wall: NOON, elapsed: 0 })
  expect(steps.step({ wall: NOON + 2100, elapsed: 2000 })).toBe(0)
  expect(steps.step({ wall: NOON + 4000, elapsed: 4000 })).toBe(0)
  expect(steps.step({ wall: NOON + 8 * HOUR, elapsed: 4000 })).toBe(8 * HOUR - 4000)
  expect(steps.step({ wall: NOON, elapsed: 6000 })).toBe(-8 * HOUR - 2000)
})
