import { readFileSync } from 'node:fs'
import { toIso } from '../time.ts'
import { MirrorError } from '../errors.ts'

/** Validates a value of untrusted JSON and returns it, or throws `bundle` with its position. */
export type Check<T> = (value: unknown, place: string) => T

function refuse(place: string, what: string): never {
  throw new MirrorError('bundle', `${place} ${what}`)
}

/** Accepts any text. */
export const text: Check<string> = (value, place) =>
  typeof value === 'string' ? value : refuse(place, 'is not a text')

/** Accepts a text that matches a pattern. */
export function textField(pattern: Pick<RegExp, 'test'>, what: string): Check<string> {
  return (value, place) => (typeof value === 'string' && pattern.test(value) ? value : refuse(place, `is not ${what}`))
}

/** Accepts a SHA-256 in hex. */
export const sha256 = textField(/^[\da-f]{64}$/, 'a SHA-256 in hex')

/** Accepts an integer in a range, exactly representable in JavaScript. */
export function integerField(min: number, max = Number.MAX_SAFE_INTEGER): Check<number> {
  return (value, place) =>
    typeof value === 'number' && Number.isSafeInteger(value) && value >= min && value <= max
      ? value
      : refuse(place, `is not a whole number from ${min} to ${max}`)
}

/** Accepts a UTC time in the format of `Date.toISOString`. */
export const date: Check<string> = (value, place) => {
  if (typeof value === 'string' && value.length === 24) {
    const time = Date.parse(value)
    if (!Number.isNaN(time) && toIso(time) === value) return value
  }
  return refuse(place, 'is not a date such as 2026-11-21T09:00:00.000Z')
}

/** Accepts true or false. */
export const truth: Check<boolean> = (value, place) =>
  typeof value === 'boolean' ? value : refuse(place, 'is neither true nor false')

/** Accepts one of a few values. */
export function choiceField<const T extends string | number>(...allowed: readonly T[]): Check<T> {
  return (value, place) => allowed.find((one) => one === value) ?? refuse(place, `is not one of ${allowed.join(', ')}`)
}

/** Accepts the value, or null. */
export function orNull<T>(check: Check<T>): Check<T | null> {
  return (value, place) => (value === null ? null : check(value, place))
}

/** Accepts what either check accepts. */
export function union<T>(one: Check<T>, other: Check<T>): Check<T> {
  return (value, place) => {
    try {
      return one(value, place)
    } catch {
      return other(value, place)
    }
  }
}

/**
 * Accepts a text of up to `max` characters that is valid JSON exactly as this program writes it, so that no two parsers
 * can interpret it differently.
 */
export function jsonText(check: Check<unknown>, max: number): Check<string> {
  return (value, place) => {
    if (typeof value !== 'string' || value.length > max) refuse(place, 'is not JSON of its kind')
    let json: unknown
    try {
      json = JSON.parse(value)
    } catch {
      refuse(place, 'is not JSON')
    }
    check(json, place)
    return JSON.stringify(json) === value ? value : refuse(place, 'is not JSON as it is stored')
  }
}

/** Accepts a list of up to `max` entries. */
export function listField<T>(check: Check<T>, max: number): Check<T[]> {
  return (value, place) => {
    if (!Array.isArray(value)) refuse(place, 'is not a list')
    if (value.length > max) refuse(place, `has ${value.length} entries, over the cap of ${max}`)
    return value.map((one: unknown, i) => check(one, `${place}[${i}]`))
  }
}

function objectOf(value: unknown, place: string): Readonly<Record<string, unknown>> {
  if (typeof value !== 'object' || value === null || Array.isArray(value)) refuse(place, 'is not an object')
  return value as Readonly<Record<string, unknown>>
}

/** Accepts an object with up to `max` keys that match a pattern. The result has no prototype. */
export function recordOf<T>(key: RegExp, check: Check<T>, max: number): Check<Partial<Record<string, T>>> {
  return (value, place) => {
    const entries = Object.entries(objectOf(value, place))
    if (entries.length > max) refuse(place, `has ${entries.length} keys, over the cap of ${max}`)
    const outcome = Object.create(null) as Partial<Record<string, T>>
    for (const [name, one] of entries) {
      if (!key.test(name)) refuse(place, `has a key that it cannot have: ${shown(name)}`)
      outcome[name] = check(one, `${place}.${name}`)
    }
    return outcome
  }
}

/** Makes a field optional. */
export function orAbsent<T>(check: Check<T>): Check<T | undefined> {
  const optional: Check<T | undefined> = (value, place) => check(value, place)
  OPTIONAL.add(optional)
  return optional
}

const OPTIONAL = new WeakSet<object>()

/** Accepts an object with exactly these keys. */
export function shape<T extends object>(checks: { [K in keyof T]-?: Check<T[K]> }): Check<T> {
  const read = members(checks)
  return (value, place) => {
    const given = objectOf(value, place)
    const foreign = Object.keys(given).find((name) => !Object.hasOwn(checks, name))
    if (foreign !== undefined)
      refuse(place, `has a field that it cannot have: ${shown(foreign)}. It may come from a newer version`)
    return read(given, place)
  }
}

/** Accepts an object with these keys, and leaves out all others. */
export function members<T extends object>(checks: { [K in keyof T]-?: Check<T[K]> }): Check<T> {
  const names = Object.keys(checks) as (keyof T & string)[]
  return (value, place) => {
    const given = objectOf(value, place)
    const outcome: Partial<T> = {}
    for (const name of names) {
      if (Object.hasOwn(given, name)) {
        outcome[name] = checks[name](given[name], `${place}.${name}`)
      } else if (!OPTIONAL.has(checks[name])) refuse(place, `has no ${name}`)
    }
    return outcome as T
  }
}

/** Reads a note of this program, a JSON file; null where there is none, or what is there has another shape. */
export function readNote<T>(path: string, check: Check<T>): T | null {
  try {
    return check(JSON.parse(readFileSync(path, 'utf8')), path)
  } catch {
    return null
  }
}

function shown(name: string): string {
  return JSON.stringify(name.length > 60 ? `${name.slice(0, 60)}…` : name)
}
