import { DAY_MS } from '../../base/time.ts'
import { type LocalTimes, readCron } from './cron.ts'
import { type Stretch, type Transition, type Zone, createZone, stretchAt } from './zone.ts'

/** The starts of a cron expression in a time zone. */
export type Starts = ReturnType<typeof readStarts>

/**
 * Reads the starts of an expression, in the machine's zone where none is given. When clocks change, what goes by elapsed time
 * follows the old and the new local time for as long as the change is, so no interval grows. A fixed time comes once a day: the
 * first time in an hour that comes twice, and at the end of an hour that is left out.
 */
export function readStarts(expression: string, zone: Zone = createZone()) {
  const times = readCron(expression)
  return {
    /** As `LocalTimes.isElapsed`. */
    isElapsed: times.isElapsed,
    /** Returns the first start after an instant, both in Unix milliseconds; null: there is none for decades. */
    after: (instant: number): number | null => firstFrom(times, zone, Math.floor(instant / 1000) * 1000 + 1000),
  }
}

function firstFrom(times: LocalTimes, zone: Zone, instant: number): number | null {
  let from = instant
  for (;;) {
    const stretch = stretchAt(zone, from)
    const found = firstInStretch(times, stretch, from)
    if (found === null || (found < stretch.end && found - from < DAY_MS)) return found
    // Behind a change of the clocks, or too far away to know that there is none before it.
    from = stretch.end === Infinity ? found - DAY_MS + 1000 : stretch.end
  }
}

/** Returns the first start from an instant on, as if the offset of its stretch never changed. */
function firstInStretch(times: LocalTimes, stretch: Stretch, from: number): number | null {
  const { offset, began } = stretch
  const local = Math.max(from + offset, began === null ? -Infinity : seenUntil(times, began))
  const time = times.firstFrom(local)
  if (time === null) return null
  return Math.min(time - offset, (began && firstOfChange(times, began, from)) ?? Infinity)
}

/** Returns the local time until which fixed times came before the change, and do not come again. */
function seenUntil({ isElapsed }: LocalTimes, { at, before }: Transition): number {
  return isElapsed ? -Infinity : at + before
}

/** Returns the first start that only the local time before a change has, or that the change left out; null: none. */
function firstOfChange(times: LocalTimes, change: Transition, from: number): number | null {
  const { at, before, after } = change
  if (times.isElapsed) {
    const old = times.firstFrom(from + before)
    return old !== null && old - before < at + Math.abs(after - before) ? old - before : null
  }
  const skipped = from > at ? null : times.firstFrom(at + before)
  return skipped !== null && skipped < at + after ? at : null
}
