import { HOUR_MS } from '../../base/time.ts'
import type { Starts } from './starts.ts'

/** What the clocks show at the same time, milliseconds. */
export interface ClockReading {
  /** The time of day, since 1970: anyone may set it. */
  readonly wall: number
  /** The time that has elapsed: it never goes back, and stands still while the machine is suspended. */
  readonly elapsed: number
}

/** A start of a job that is due. */
export interface DueStart {
  /** When it was planned, Unix milliseconds. */
  readonly at: number
  /** By how much it is late, milliseconds. */
  readonly lateMs: number
  /** Whether another time of the job has come since: it has no start of its own. */
  readonly isMerged: boolean
}

/** The plan of one job: its next start, by two clocks. */
export type StartPlan = ReturnType<typeof planStarts>

/** A time of a job, its start, and what elapsed time says of it. */
interface Planned {
  readonly time: number
  readonly at: number
  /** The elapsed time at which it is due whatever the wall clock shows; infinite for fixed times of a day. */
  readonly latest: number
}

/** So long a start waits for a wall clock that is slower than elapsed time, milliseconds. */
const SLOWER_MS = 10_000

/** A time that comes again because the clock was set back has no second start so soon, milliseconds, nor within half an interval. */
const FIXED_AGAIN_MS = 3 * HOUR_MS
const ELAPSED_AGAIN_MS = 5 * 60_000

/** Plans the starts of a job from now on. `drawDelay` returns how long after its time each start comes, milliseconds. */
export function planStarts(starts: Starts, now: ClockReading, drawDelay: () => number) {
  let next = planAfter(now.wall, now)
  /** The last time that had its start, and when. */
  let last: { time: number; elapsed: number } | null = null

  function planAfter(instant: number, { wall, elapsed }: ClockReading): Planned | null {
    const time = starts.after(instant)
    if (time === null) return null
    const at = time + drawDelay()
    if (!starts.isElapsed) return { time, at, latest: Infinity }
    // A clock that is behind its own next times lengthens no interval, whether time elapses or the machine is suspended.
    const wait = at - Math.max(wall, instant)
    return { time, at: Math.min(at, wall + wait), latest: elapsed + wait + SLOWER_MS }
  }

  /** Whether a time had its start so recently that it is the same one, not another that a wrong clock showed. */
  function isRepeated(time: number, { wall, elapsed }: ClockReading): boolean {
    if (last === null || time > last.time) return false
    const interval = (starts.after(last.time) ?? Infinity) - last.time
    const usual = starts.isElapsed ? ELAPSED_AGAIN_MS : FIXED_AGAIN_MS
    const most = Math.min(usual, interval / 2)
    return last.time - time < most && elapsed - last.elapsed + time - wall < most
  }

  return {
    /** Returns the next start with its delay, Unix milliseconds; null: there is none. */
    nextAt: ({ wall, elapsed }: ClockReading): number | null =>
      next === null ? null : Math.min(next.at, wall + next.latest - elapsed),
    /**
     * Returns the start that is due, and plans the next one; however many were missed, they are one. Null: none is due.
     * `isAtOnce`: one whose time has come is due without its delay.
     */
    take(reading: ClockReading, isAtOnce = false): DueStart | null {
      const { wall, elapsed } = reading
      if (next === null) return null
      const { time, at, latest } = next
      if (wall < (isAtOnce ? Math.min(time, at) : at) && elapsed < latest) return null
      const following = starts.after(time)
      last = { time, elapsed }
      // One step, also for a clock that went on by years.
      next = planAfter(Math.max(time, wall), reading)
      const isMerged = following !== null && following <= wall
      return { at, lateMs: Math.max(0, wall - at), isMerged }
    },
    /** Plans again after the wall clock was set back. */
    setBack(reading: ClockReading): void {
      const time = starts.after(reading.wall)
      if (next === null || time === null || time >= next.time) return
      if (!isRepeated(time, reading)) next = planAfter(reading.wall, reading)
    },
  }
}

/** A smaller difference between two looks is how clocks are made to run faster or slower, milliseconds. */
const STEP_MS = 1000

/** Watches the wall clock from now on. */
export function watchSteps(start: ClockReading) {
  let before = start
  return {
    /** Returns by how much the wall clock went on more than time elapsed since the last call, milliseconds; 0: it kept step. */
    step(now: ClockReading): number {
      const by = now.wall - before.wall - (now.elapsed - before.elapsed)
      before = now
      return Math.abs(by) < STEP_MS ? 0 : by
    },
  }
}
