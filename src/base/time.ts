/** Milliseconds of an hour and of a day. */
export const HOUR_MS = 3_600_000
export const DAY_MS = 86_400_000

/** Formats Unix milliseconds per ISO 8601 in UTC, with milliseconds. */
export function toIso(at: number): string {
  return new Date(at).toISOString()
}

/** Formats Unix milliseconds as `toIso`; null without a time. */
export function toIsoOrNull(at: number | null | undefined): string | null {
  return at === null || at === undefined ? null : toIso(at)
}

/** Formats a duration in its two largest units: `3 h 12 min`. */
export function duration(seconds: number): string {
  if (seconds < 60) return `${Math.max(0, Math.round(seconds))} s`
  const minutes = Math.floor(seconds / 60)
  if (minutes < 60) return `${minutes} min`
  const hours = Math.floor(minutes / 60)
  return hours < 48 ? `${hours} h ${minutes % 60} min` : `${Math.floor(hours / 24)} d ${hours % 24} h`
}

/** Returns the Unix milliseconds of a date in any form that JavaScript parses; null for any other text. */
export function parseDate(text: string | null | undefined): number | null {
  const at = Date.parse(text ?? '')
  return Number.isNaN(at) ? null : at
}

const DAY_NAME = '(?:Mon|Tue|Wed|Thu|Fri|Sat|Sun)'
const LONG_DAY_NAME = '(?:Mon|Tues|Wednes|Thurs|Fri|Satur|Sun)day'
const MONTHS = ['Jan', 'Feb', 'Mar', 'Apr', 'May', 'Jun', 'Jul', 'Aug', 'Sep', 'Oct', 'Nov', 'Dec']
const MONTH = `(?<month>${MONTHS.join('|')})`
const TIME_OF_DAY = '(?<hour>\\d{2}):(?<minute>\\d{2}):(?<second>\\d{2})'

/** The three forms of an HTTP date: IMF-fixdate, RFC 850, asctime (RFC 9110, 5.6.7). Each of them is GMT. */
const HTTP_DATES = [
  `${DAY_NAME}, (?<day>\\d{2}) ${MONTH} (?<year>\\d{4}) ${TIME_OF_DAY} GMT`,
  `${LONG_DAY_NAME}, (?<day>\\d{2})-${MONTH}-(?<year>\\d{2}) ${TIME_OF_DAY} GMT`,
  `${DAY_NAME} ${MONTH} (?<day>[ \\d]\\d) ${TIME_OF_DAY} (?<year>\\d{4})`,
].map((form) => new RegExp(`^${form}$`))

/**
 * Returns the Unix milliseconds of an HTTP date in any of its three forms; null for any other text, and for a day or time
 * that does not exist. The only reader of dates in headers: others read asctime as local time.
 */
export function readHttpDate(text: string | null | undefined): number | null {
  const value = text?.trim() ?? ''
  const fields = HTTP_DATES.map((form) => form.exec(value)?.groups).find((one) => one !== undefined)
  if (fields === undefined) return null
  const [day, hour, minute, second] = ['day', 'hour', 'minute', 'second'].map((name) => Number(fields[name])) as [
    number,
    number,
    number,
    number,
  ] // every form has all groups
  if (!isTimeOfDay(hour, minute, second) || hour === 24) return null
  const year = fullYear(fields['year'] ?? '')
  const month = MONTHS.indexOf(fields['month'] ?? '')
  const date = new Date(0)
  date.setUTCFullYear(year, month, day)
  if (date.getUTCMonth() !== month || date.getUTCDate() !== day) return null
  return date.setUTCHours(hour, minute, second)
}

/** Returns the year of two digits that is at most 50 years ahead (RFC 9110, 5.6.7), or the year of four digits. */
function fullYear(digits: string): number {
  if (digits.length === 4) return Number(digits)
  const latest = new Date().getUTCFullYear() + 50
  return latest - ((((latest - Number(digits)) % 100) + 100) % 100)
}

/** Returns the Unix seconds of an HTTP date, as `readHttpDate`. */
export function parseHttpDate(text: string): number | null {
  const at = readHttpDate(text)
  return at === null ? null : at / 1000
}

/**
 * Returns the wait of a Retry-After header, milliseconds, 0 for a date that has passed. Null for a text that is neither
 * whole seconds nor an HTTP date (RFC 9110, 10.2.3), and for a header that was sent twice: it counts as absent.
 */
export function readRetryAfter(value: string | readonly string[] | null | undefined, now: number): number | null {
  if (typeof value !== 'string') return null
  const text = value.trim()
  if (/^\d+$/.test(text)) return Number(text) * 1000
  const at = readHttpDate(text)
  return at === null ? null : Math.max(0, at - now)
}

/** Formats Unix seconds as an HTTP date (IMF-fixdate). */
export function formatHttpDate(seconds: number): string {
  return new Date(seconds * 1000).toUTCString()
}

const STAMP = /^(\d{4})-(\d{2})-(\d{2})(?:[Tt ](\d{2}):(\d{2})(?::(\d{2})(?:[.,](\d+))?)?\s?([Zz]|[+-]\d{2}:?\d{2})?)?$/

/** The form that nearly all timestamps have, for days that exist in each year. */
const COMMON =
  /^(?!0000)\d{4}-(?:(?:0[1-9]|1[0-2])-(?:0[1-9]|1\d|2[0-8])|(?:0[13-9]|1[0-2])-(?:29|30)|(?:0[13578]|1[02])-31)T(?:[01]\d|2[0-3])(?::[0-5]\d){2}(?:\.\d+)?Z$/

/** Shown for a timestamp that cannot be parsed: the earliest time of RFC 3339, so that it sorts first. */
const NEVER = '0001-01-01T00:00:00Z'

/**
 * Returns a timestamp as a text that sorts by time: UTC with nine decimals, without the Z. Accepts many forms: a date
 * alone is the beginning of the day, a time without a zone is UTC. Empty for an invalid timestamp.
 */
export function instantOf(stamp: unknown): string {
  if (typeof stamp === 'string' && COMMON.test(stamp))
    return `${stamp.slice(0, 19)}.${stamp.slice(20, -1).padEnd(9, '0').slice(0, 9)}`
  const match = typeof stamp === 'string' ? STAMP.exec(stamp.trim()) : null
  if (match === null) return ''
  const [year = 0, month = 0, day = 0, hour = 0, minute = 0, second = 0] = match
    .slice(1, 7)
    .map((digits: string | undefined) => Number(digits ?? 0))
  const date = new Date(0)
  date.setUTCFullYear(year, month - 1, day)
  const offset = offsetOf(match[8])
  if (date.getUTCMonth() !== month - 1 || offset === null) return ''
  if (!isTimeOfDay(hour, minute, second)) return ''
  date.setUTCHours(hour, minute - offset, second)
  if (date.getUTCFullYear() < 1 || date.getUTCFullYear() > 9999) return ''
  const decimals = (match[7] ?? '').padEnd(9, '0').slice(0, 9)
  return `${date.toISOString().slice(0, 19)}.${decimals}`
}

/** Returns the first of several timestamps that is one, as `instantOf`; empty where none is. */
export function firstInstant(stamps: readonly unknown[]): string {
  return stamps.map(instantOf).find((instant) => instant !== '') ?? ''
}

/** Reports whether a time exists: with a leap second, and 24:00:00 as the end of a day (ISO 8601), but nothing after it. */
function isTimeOfDay(hour: number, minute: number, second: number): boolean {
  if (hour === 24) return minute === 0 && second === 0
  return hour < 24 && minute < 60 && second <= 60
}

/** Returns the offset of a zone from UTC, minutes; null for one that cannot exist (RFC 3339, 5.6). */
function offsetOf(zone: string | undefined): number | null {
  if (zone === undefined || zone.toUpperCase() === 'Z') return 0
  const hours = Number(zone.slice(1, 3))
  const minutes = Number(zone.slice(-2))
  if (hours > 23 || minutes > 59) return null
  return (hours * 60 + minutes) * (zone.startsWith('-') ? -1 : 1)
}

/** Formats an instant per RFC 3339, without trailing zeros in its fraction. */
export function stampOf(instant: string): string {
  return instant === '' ? NEVER : `${instant.slice(0, 19)}${instant.slice(19).replace(/\.?0*$/, '')}Z`
}

/**
 * Returns the Unix seconds of a timestamp, rounded up, so that a Last-Modified derived from it is never older. Null for
 * an invalid timestamp, and for a time after `now` (Unix milliseconds).
 */
export function pastSeconds(stamp: unknown, now: number): number | null {
  const instant = instantOf(stamp)
  if (instant === '') return null
  const seconds = Date.parse(`${instant.slice(0, 19)}Z`) / 1000
  const fraction = Number(`0${instant.slice(19)}`)
  if ((seconds + fraction) * 1000 > now) return null
  return fraction > 0 ? seconds + 1 : seconds
}

/**
 * Returns a day (YYYY-MM-DD) for which every timestamp that begins with a digit and is less, as text, is older than this
 * time (Unix seconds), whatever its zone.
 */
export function olderDay(seconds: number): string {
  return new Date((seconds - 2 * 86_400) * 1000).toISOString().slice(0, 10)
}

/** Reports whether a timestamp is older than the time of this `olderDay`, without parsing it; false: it may be. */
export function isBefore(stamp: string, day: string): boolean {
  return stamp < day && /^\d/.test(stamp)
}

/** Returns the newest timestamp that is not in the future, as `pastSeconds`; null if there is none. */
export function newestPast(stamps: Iterable<string>, now: number): number | null {
  let newest: number | null = null
  let dayBefore = ''
  for (const stamp of stamps) {
    if (isBefore(stamp, dayBefore)) continue
    const seconds = pastSeconds(stamp, now)
    if (seconds === null || (newest !== null && seconds <= newest)) continue
    newest = seconds
    dayBefore = olderDay(seconds)
  }
  return newest
}

const WEEKDAYS = ['sunday', 'monday', 'tuesday', 'wednesday', 'thursday', 'friday', 'saturday']
const UNITS = new Map([
  ['m', 60_000],
  ['h', HOUR_MS],
  ['d', DAY_MS],
  ['w', 7 * DAY_MS],
])

/** The forms that `readSince` accepts, for messages. */
export const SINCE_FORMS =
  'a date such as 2026-01-31, a time such as 2026-01-31T12:00:00Z, today, yesterday, a weekday, or an age such as 30m, 12h, 7d or 2w'

/** Returns the question for a number without a unit, to follow it; empty for any other text. */
export function missingUnit(since: string): string {
  return /^\d{1,5}$/.test(since) ? ` (${since}d?)` : ''
}

/**
 * Returns the Unix milliseconds of a time as people write it, in UTC: a date is its beginning, a weekday the beginning of
 * the last such day (today included), an age is counted back from now. Null for any other text.
 */
export function readSince(text: string, now: number): number | null {
  const word = text.trim().toLowerCase()
  const today = Math.floor(now / DAY_MS) * DAY_MS
  if (word === 'today') return today
  if (word === 'yesterday') return today - DAY_MS
  const weekday = WEEKDAYS.indexOf(word)
  if (weekday >= 0) return today - ((new Date(today).getUTCDay() - weekday + 7) % 7) * DAY_MS
  const [, count, unit = ''] = /^(\d{1,5})([mhdw])$/.exec(word) ?? []
  if (count !== undefined) return now - Number(count) * (UNITS.get(unit) ?? 0)
  const instant = instantOf(text)
  return instant === '' ? null : Date.parse(`${instant.slice(0, 23)}Z`)
}
