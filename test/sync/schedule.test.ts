import { afterEach, describe, expect, test, vi } from 'vitest'
import { createLog } from '../../src/core/log.ts'
import { type Schedule, isCronExpression, startSchedule } from '../../src/sync/schedule.ts'

const HOUR = 3_600_000
const QUIET = createLog({ level: 'error', format: 'json' }, () => undefined)
const schedules: Schedule[] = []

afterEach(async () => {
  for (const schedule of schedules.splice(0)) await schedule.stop()
})

/** Starts one hourly job and returns whether it ran at once; a run says that the start caused it. */
function caughtUp(lastSuccess: number | null, catchUp = true): boolean {
  const runs: string[] = []
  const run = (cause: string): void => void runs.push(cause)
  const job = { name: 'osv', expression: '7 * * * *', lastSuccess, run }
  const options = { jitterSeconds: 0, catchUp, now: () => 10 * HOUR, log: QUIET }
  const schedule = startSchedule([job], options)
  schedules.push(schedule)
  expect(runs).toEqual([])
  schedule.catchUp()
  expect(runs).toEqual(runs.map(() => 'start'))
  return runs.length === 1
}

describe('the schedule', () => {
  test('runs a source at once that never succeeded, or not within its interval', () => {
    expect(caughtUp(null)).toBe(true)
    expect(caughtUp(8.9 * HOUR)).toBe(true)
  })

  test('does not ask upstream again at every restart of a healthy mirror', () => {
    expect(caughtUp(9.1 * HOUR)).toBe(false)
    expect(caughtUp(10 * HOUR)).toBe(false)
  })

  test('runs nothing at start when catching up is turned off', () => {
    expect(caughtUp(null, false)).toBe(false)
  })

  test('runs a job at the times of its expression, and returns the next time', async () => {
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
    vi.useFakeTimers()
    const methods = ['log', 'info', 'warn', 'error', 'debug'] as const
    const spies = methods.map((method) => vi.spyOn(console, method).mockReturnValue())
    spies.push(vi.spyOn(process.stderr, 'write').mockReturnValue(true) as never)
    try {
      const lines: string[] = []
      const log = createLog({ level: 'debug', format: 'json' }, (line) => lines.push(line))
      const job = { name: 'osv', expression: '* * * * * *', lastSuccess: 0, run: () => undefined }
      const options = { jitterSeconds: 86_400, catchUp: false, now: Date.now, log }
      schedules.push(startSchedule([job], options))
      await vi.advanceTimersByTimeAsync(5_000)
      expect(lines.map((line) => JSON.parse(line) as object)).toContainEqual(
        expect.objectContaining({
          level: 'debug',
          msg: expect.stringContaining('overlap') as string,
        }),
      )
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

  test('tells a valid cron expression from an invalid one', () => {
    expect(isCronExpression('7 * * * *')).toBe(true)
    expect(isCronExpression('99 * * * *')).toBe(false)
    expect(isCronExpression('soon')).toBe(false)
  })
})
