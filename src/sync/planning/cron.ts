import { createTask, parse, validate } from 'node-cron'
import { DAY_MS, HOUR_MS } from '../../base/time.ts'

/** The times of a cron expression in local time: Unix milliseconds as if the local time were UTC. */
export type LocalTimes = ReturnType<typeof readCron>

/** Returns whether node-cron accepts an expression. */
export function isCronExpression(expression: string): boolean {
  return validate(expression)
}

/** Days that are looked at: 29 February falls on each weekday within 40 years, also around 2100. */
const MAX_DAYS = 366 * 40

/** Reads an expression: node-cron parses it, and says which days it names. The only file that imports node-cron. */
export function readCron(expression: string) {
  const fields = parse(expression)
  const months = new Set(fields.month)
  const offsets = timesOfDay(fields)
  const first = offsets[0] ?? 0
  const task = createTask(expression, () => undefined, { timezone: 'UTC' })
  let known = { day: NaN, isNamed: false } // most starts are on the day of the one before
  const isDay = (day: number): boolean => {
    if (!months.has(new Date(day).getUTCMonth() + 1)) return false
    if (known.day !== day) known = { day, isNamed: task.match(new Date(day + first)) }
    return known.isNamed
  }
  return {
    /**
     * Whether it goes by elapsed time: the hours are `*`, or have a step. Other hours are fixed times of a day, each of which
     * comes once a day.
     */
    isElapsed: fields.hour.length === 24 || /[*/]/.test(hourText(expression)),
    /** Returns the first time that is not before `local`; null: there is none for decades. */
    firstFrom(local: number): number | null {
      const today = Math.floor(local / DAY_MS) * DAY_MS
      const later = offsets.find((offset) => today + offset >= local)
      if (later !== undefined && isDay(today)) return today + later
      for (let n = 1; n <= MAX_DAYS; n++) {
        const day = today + n * DAY_MS
        if (isDay(day)) return day + first
      }
      return null
    },
  }
}

/** Returns the field of the hours as it is written; '' for a name such as `@daily`. */
function hourText(expression: string): string {
  return expression.trim().split(/\s+/).at(-4) ?? ''
}

/** Returns all times of a day, milliseconds after midnight, in their order. */
function timesOfDay({ hour, minute, second }: ReturnType<typeof parse>): number[] {
  const times = hour.flatMap((h) => minute.flatMap((m) => second.map((s) => h * HOUR_MS + m * 60_000 + s * 1000)))
  return times.sort((a, b) => a - b)
}
