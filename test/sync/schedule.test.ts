import { afterEach, beforeEach, describe, expect, vi } from 'vitest'
import { longTest, test } from '../support/tables.ts'
import { createLog } from '../../src/base/log.ts'
import { type Schedule, cronPeriod, startSchedule } from '../../src/sync/schedule.ts'
import { isCronExpression } from '../../src/sync/planning/cron.ts'

const HOUR = 3_600_000
const QUIET = createLog({ level: 'error', format: 'json' }, () => undefined)
const schedules: Schedule[] = []

afterEach(() => {
  for (const schedule of schedules.splice(0)) schedule.stop()
})

/** Starts one hourly job and returns whether it ran at once; a run says that the start caused it. */
function caughtUp(lastSuccess: number | null, catchUp = true): boolean {
  const runs: string[] = []
  const run = (cause: string): void => void runs.push(cause)
  const job = { name: 'osv', expression: '7 * * * *', lastSuccess, run }
  const zone = (): number => 0
  const options = { jitterSeconds: 0, catchUp, now: () => 10 * HOUR, zone, log: QUIET }
  const schedule = startSchedule([job], options)
  schedules.push(schedule)
  expect(runs).toEqual([])
  schedule.catchUp()
  expect(runs).toEqual(runs.map(() => 'start'))
  return runs.length === 1
}

/** Starts a job with clocks of its own, and returns the times at which it ran, and the log. */
function started({ expression = '7 * * * *', jitterSeconds = 0 } = {}) {
  const texts: string[] = []
  const runs: string[] = []
  const log = createLog({ level: 'debug', format: 'json' }, (text) => texts.push(text))
  const run = (): void => void runs.push(new Date().toISOString().slice(11, 19))
  const job = { name: 'osv', expression, lastSuccess: 0, run }
  const options = { jitterSeconds, catchUp: true, now: Date.now, zone: () => 0, log }
  const schedule = startSchedule([job], options)
  schedules.push(schedule)
  const lines = () => texts.map((text) => JSON.parse(text) as { level: string; msg: string })
  return { schedule, runs, lines, messages: () => lines().map(({ msg }) => msg) }
}

describe('the schedule', () => {
  test('runs a source at once that never succeeded, or not since its last start came', () => {
    expect(caughtUp(null)).toBe(true)
    expect(caughtUp(8.9 * HOUR)).toBe(true)
    expect(caughtUp(9.1 * HOUR)).toBe(true) // at 9:06, before the start at 9:07
  })

  test('does not ask upstream again at every restart of a healthy mirror', () => {
    expect(caughtUp(9.2 * HOUR)).toBe(false)
    expect(caughtUp(10 * HOUR)).toBe(false)
  })

  test('runs a source at once whose last success is dated in the future: it proves nothing', () => {
    expect(caughtUp(10.1 * HOUR)).toBe(true)
  })

  test('does not run at start what ended its process twice in a row, and says so', () => {
    const ran: number[] = []
    const texts: string[] = []
    const log = createLog({ level: 'warn', format: 'json' }, (text) => texts.push(text))
    for (const lostRuns of [0, 1, 2, 3]) {
      const run = (): void => void ran.push(lostRuns)
      const job = { name: 'osv', expression: '7 * * * *', lastSuccess: null, lostRuns, run }
      const options = { jitterSeconds: 0, catchUp: true, now: Date.now, zone: () => 0, log }
      const schedule = startSchedule([job], options)
      schedules.push(schedule)
      schedule.catchUp()
      expect(schedule.nextRunAt('osv')).not.toBeNull()
    }
    expect(ran).toEqual([0, 1])
    expect(texts).toEqual([expect.stringContaining('last 2 runs'), expect.stringContaining('last 3 runs')])
  })

  test('runs nothing at start when catching up is turned off', () => {
    expect(caughtUp(null, false)).toBe(false)
  })

  longTest('runs a job at the times of its expression, and returns the next time', async () => {
    const { promise, resolve } = Promise.withResolvers<string>()
    const job = { name: 'osv', expression: '* * * * * *', lastSuccess: 0, run: resolve }
    const schedule = startSchedule([job], {
      jitterSeconds: 0,
      catchUp: false,
      now: Date.now,
      log: QUIET,
    })
    schedules.push(schedule)
    const next = schedule.nextRunAt('osv') ?? 0
    expect(next - Date.now()).toBeLessThanOrEqual(1000)
    expect(schedule.nextRunAt('unknown')).toBeNull()
    expect(await promise).toBe('schedule')
  })

  test('logs a start that the jitter of the one before holds back, and writes nothing beside the log', async () => {
    vi.useFakeTimers({ now: 10 * HOUR })
    const methods = ['log', 'info', 'warn', 'error', 'debug'] as const
    const spies = methods.map((method) => vi.spyOn(console, method).mockReturnValue())
    spies.push(vi.spyOn(process.stderr, 'write').mockReturnValue(true) as never)
    vi.spyOn(Math, 'random').mockReturnValue(0.5)
    try {
      const { runs, lines } = started({ expression: '* * * * * *', jitterSeconds: 10 })
      await vi.advanceTimersByTimeAsync(20_000)
      expect(runs.length).toBeGreaterThanOrEqual(2)
      const overlap = expect.stringContaining('overlap') as string
      expect(lines()).toContainEqual(expect.objectContaining({ level: 'debug', msg: overlap }))
      for (const spy of spies) expect(spy).not.toHaveBeenCalled()
    } finally {
      vi.restoreAllMocks()
      vi.useRealTimers()
    }
  })

  test('returns the time at which a job runs, with its jitter, also while it waits for that', async () => {
    vi.useFakeTimers({ now: 10 * HOUR })
    try {
      const ranAt: number[] = []
      const run = (): void => void ranAt.push(Date.now())
      const job = { name: 'osv', expression: '0 * * * *', lastSuccess: 0, run }
      const options = { jitterSeconds: 1800, catchUp: false, now: Date.now, log: QUIET }
      const schedule = startSchedule([job], options)
      schedules.push(schedule)
      const first = schedule.nextRunAt('osv') ?? 0
      expect(first).toBeGreaterThanOrEqual(11 * HOUR)
      expect(first).toBeLessThan(11.5 * HOUR)
      await vi.advanceTimersByTimeAsync(first - 1 - Date.now())
      expect(ranAt).toEqual([])
      expect(schedule.nextRunAt('osv')).toBe(first)
      await vi.advanceTimersByTimeAsync(1000)
      expect(ranAt).toEqual([first])
      expect(schedule.nextRunAt('osv')).toBeGreaterThanOrEqual(12 * HOUR)
    } finally {
      vi.useRealTimers()
    }
  })

  test('returns the longest interval of an expression, whatever clocks do in the machine’s zone', () => {
    expect(cronPeriod('7 * * * *')).toBe(HOUR)
    expect(cronPeriod('7 3,9 * * *')).toBe(18 * HOUR)
  })

  test('tells a valid cron expression from an invalid one', () => {
    expect(isCronExpression('7 * * * *')).toBe(true)
    expect(isCronExpression('99 * * * *')).toBe(false)
    expect(isCronExpression('soon')).toBe(false)
  })
})

describe('while the clock is set or the process stands still, the schedule', () => {
  const NOON = Date.parse('2026-05-04T12:00:00Z')

  beforeEach(() => void vi.useFakeTimers({ now: NOON }))
  afterEach(() => void vi.useRealTimers())

  test('plans again when the clock is set back, says so once, and does what it says', async () => {
    const { schedule, runs, messages } = started()
    vi.setSystemTime(NOON - 2 * HOUR)
    expect(schedule.nextRunAt('osv')).toBe(NOON - 2 * HOUR + 7 * 60_000)
    await vi.advanceTimersByTimeAsync(8 * 60_000)
    expect(runs).toEqual(['10:07:00'])
    expect(messages()).toEqual([expect.stringMatching(/^the clock was set back by 2 h 0 min: /)])
  })

  test('says that the clock was set back also when it went forward just before', async () => {
    const { messages } = started()
    for (const hours of [2, -1]) {
      vi.setSystemTime(NOON + hours * HOUR)
      await vi.advanceTimersByTimeAsync(2000)
    }
    const lines = messages().filter((line) => line.startsWith('the clock'))
    expect(lines).toEqual([
      expect.stringMatching(/^the clock went on by 2 h 0 min: /),
      expect.stringMatching(/^the clock was set back by 3 h 0 min: /),
    ])
  })

  test('makes a missed start once as soon as it goes on, and says so', async () => {
    const { schedule, runs, messages } = started({ expression: '7 12 * * *' })
    vi.setSystemTime(NOON + 9 * HOUR)
    await vi.advanceTimersByTimeAsync(5000)
    expect(runs).toEqual(['21:00:02'])
    expect(messages()).toEqual([
      expect.stringMatching(/^the clock went on by 9 h 0 min: /),
      expect.stringContaining('was missed and is made now, 8 h 53 min late'),
    ])
    expect(schedule.nextRunAt('osv')).toBe(NOON + 24 * HOUR + 7 * 60_000)
  })

  test('makes a start at once that waits for its delay when another schedule takes over, and no other', async () => {
    vi.spyOn(Math, 'random').mockReturnValue(0.5)
    const { schedule, runs } = started({ jitterSeconds: 60 })
    await vi.advanceTimersByTimeAsync(7 * 60_000 + 10_000)
    expect(runs).toEqual([])
    schedule.handOver()
    expect(runs).toEqual(['12:07:10'])
    const next = started({ jitterSeconds: 60 })
    next.schedule.handOver()
    vi.restoreAllMocks()
    await vi.advanceTimersByTimeAsync(2 * 3_600_000)
    expect([runs, next.runs]).toEqual([['12:07:10'], []])
  })

  test('does not run a job again, to catch up, that it has run already', async () => {
    const { schedule, runs } = started()
    await vi.advanceTimersByTimeAsync(8 * 60_000)
    schedule.catchUp()
    expect(runs).toEqual(['12:07:00'])
  })
})
