import { messageOf } from '../base/errors.ts'
import type { Logger } from '../base/log.ts'
import { duration, toIso } from '../base/time.ts'
import { readCron } from './planning/cron.ts'
import { type DueStart, type ClockReading, type StartPlan, planStarts, watchSteps } from './planning/plan.ts'
import { type Starts, readStarts } from './planning/starts.ts'
import type { Zone } from './planning/zone.ts'

/** Why a job runs: a time of its expression has come, or one was missed before the schedule was started. */
type JobCause = 'schedule' | 'start'

/** A job that runs at the times of a cron expression, each time up to `jitterSeconds` later. */
interface Job {
  name: string
  expression: string
  run(cause: JobCause): void
}

/**
 * A job, and when its work was last done well, Unix milliseconds; null: never. `lostRuns`: how many of its last runs ended with
 * their process or thread.
 */
export type ScheduledJob = Job & { lastSuccess: number | null; readonly lostRuns?: number }

/** A running schedule. */
export interface Schedule {
  /** Next start of a job, unix milliseconds, with its jitter; null: never. */
  nextRunAt(name: string): number | null
  /**
   * Runs the jobs of which a start was missed since their last success (`lastSuccess`), because the program was not running;
   * none when catching up is turned off, and none that may be what ends the process: those wait for their schedule, so that a
   * program that is started again and again serves meanwhile. A success that is dated in the future proves nothing.
   */
  catchUp(): void
  /** Runs the jobs at once that only wait for the end of their delay, and stops: another schedule takes over. */
  handOver(): void
  stop(): void
}

/** How a schedule is kept. */
interface ScheduleOptions {
  readonly jitterSeconds: number
  readonly catchUp: boolean
  /** The time of day, Unix milliseconds. */
  readonly now: () => number
  /** The machine's own where it is not given. */
  readonly zone?: Zone
  readonly log: Logger
  /** Another schedule of the process logs steps of the clock. */
  readonly isSecond?: boolean
}

/** Number of starts that are compared to find the longest interval: more than a week of an hourly schedule. */
const COMPARED_STARTS = 200

/** Returns the longest interval between two starts of an expression, milliseconds; null when it never starts twice. */
export function cronPeriod(expression: string): number | null {
  const times = readCron(expression)
  let longest: number | null = null
  let before = times.firstFrom(Date.now())
  for (let n = 1; n < COMPARED_STARTS && before !== null; n++) {
    const next = times.firstFrom(before + 1000)
    if (next !== null) longest = Math.max(longest ?? 0, next - before)
    before = next
  }
  return longest
}

/** How often the clocks are compared, milliseconds: so late a step of the wall clock is seen at most. */
const TICK_MS = 2000

/** A start that is later than this is one that was missed, milliseconds. */
const LATE_MS = 1000

interface Kept {
  readonly job: ScheduledJob
  readonly starts: Starts
  readonly plan: StartPlan
  /** Whether it ran since the schedule was started. */
  hasRun: boolean
}

/**
 * Starts the jobs. Whether one is due is decided every few seconds by the time of day and by the time that has elapsed, so it
 * does not matter whether the clock is set or the machine is suspended.
 */
export function startSchedule(jobs: readonly ScheduledJob[], options: ScheduleOptions): Schedule {
  const { jitterSeconds, now, log } = options
  const readClocks = (): ClockReading => ({ wall: now(), elapsed: performance.now() })
  const drawDelay = (): number => Math.floor(Math.random() * jitterSeconds * 1000)
  const begin = readClocks()
  const kept = jobs.map((job): Kept => {
    const starts = readStarts(job.expression, options.zone)
    return { job, starts, plan: planStarts(starts, begin, drawDelay), hasRun: false }
  })
  const steps = watchSteps(begin)
  const logStep = stepLog(log)

  /** Reads the clocks, and plans again if the time of day was set back. */
  const look = (): ClockReading => {
    const at = readClocks()
    const by = steps.step(at)
    if (by < 0) kept.forEach(({ plan }) => plan.setBack(at))
    if (by !== 0 && options.isSecond !== true) logStep(by, at)
    return at
  }
  const startAll = (isAtOnce = false): void => {
    const at = look()
    for (const one of kept) {
      const due = one.plan.take(at, isAtOnce)
      if (due !== null) startDue(one, due, log)
    }
  }
  const tick = (): void => {
    startAll()
    timer = setTimeout(tick, untilNext(kept, readClocks()))
  }
  let timer = setTimeout(tick, untilNext(kept, begin))
  return {
    catchUp() {
      if (!options.catchUp) return
      const { wall } = readClocks()
      for (const one of kept) if (!one.hasRun && isMissed(one, wall)) startMissed(one, log)
    },
    nextRunAt(name) {
      const at = look()
      return kept.find(({ job }) => job.name === name)?.plan.nextAt(at) ?? null
    },
    handOver() {
      startAll(true)
      clearTimeout(timer)
    },
    stop: () => clearTimeout(timer),
  }
}

/** Whether a start came between the last success of a job and now. */
function isMissed({ job: { lastSuccess }, starts }: Kept, wall: number): boolean {
  if (lastSuccess === null || lastSuccess > wall) return true
  const first = starts.after(lastSuccess)
  return first !== null && first <= wall
}

function untilNext(kept: readonly Kept[], at: ClockReading): number {
  const waits = kept.map(({ plan }) => (plan.nextAt(at) ?? Infinity) - at.wall)
  return Math.max(1, Math.min(TICK_MS, ...waits))
}

function start(one: Kept, cause: JobCause, log: Logger): void {
  one.hasRun = true
  try {
    one.job.run(cause)
  } catch (error) {
    log.error({}, `${one.job.name}: it could not be started: ${messageOf(error)}`)
  }
}

/** One run may have met a kill from outside; after so many in a row each start may end the program again. */
const LOST_RUNS = 2

function startMissed(one: Kept, log: Logger): void {
  const { name, lostRuns = 0 } = one.job
  if (lostRuns < LOST_RUNS) return start(one, 'start', log)
  const why = `its last ${lostRuns} runs ended with the process or its sync thread, and may be the cause`
  log.warn({ source: name }, `${name}: no run at this start: ${why}. It is tried again at its schedule`)
}

/** Starts what is due. One that was missed is made up for at once. */
function startDue(one: Kept, { at, lateMs, isMerged }: DueStart, log: Logger): void {
  const { name } = one.job
  if (lateMs > LATE_MS) {
    const late = duration(lateMs / 1000)
    const why = 'the process or the machine stood still, or the clock was set forward'
    const text = `${name}: the start planned for ${toIso(at)} was missed and is made now, ${late} late: ${why}`
    log.info({ source: name, lateMs }, text)
  } else if (isMerged) log.debug({}, `${name}: starts overlap: the one before still waited`)
  start(one, 'schedule', log)
}

/** Steps of the clock within so long are one line of the log, milliseconds. */
const STEP_LOG_MS = 60_000

/** Returns what logs that the time of day was set: one line for a clock that is set again and again in one direction. */
function stepLog(log: Logger): (by: number, at: ClockReading) => void {
  const quietUntil = { back: -Infinity, forward: -Infinity }
  return (by, { elapsed }) => {
    const direction = by < 0 ? 'back' : 'forward'
    if (elapsed < quietUntil[direction]) return
    quietUntil[direction] = elapsed + STEP_LOG_MS
    const much = duration(Math.round(Math.abs(by) / 1000))
    if (by < 0) {
      const why = 'what was dated by the clock before may lie in the future ("patchmirror status")'
      log.warn({}, `the clock was set back by ${much}: runs are planned by the new time; ${why}`)
    } else {
      log.info({}, `the clock went on by ${much}: it was set forward, or the machine was suspended`)
    }
  }
}
