import { type CheckContext, type Parsed, type Setting, numberFromText } from './base.ts'
import { isObject } from '../../base/json/objects.ts'

/** Entries of a map by their names, one level deep. */
type Entries<K extends string, T> = Readonly<Partial<Record<K, T>>>

/**
 * A map of known names. A later layer changes the entries that it names. In an environment variable it is NAME=VALUE,
 * separated by commas.
 */
export function mapOf<K extends string, T>(
  items: Readonly<Record<K, Setting<T>>>,
  example: string,
): Setting<Entries<K, T>> {
  const all = Object.entries<Setting<T>>(items)
  const check = (raw: unknown, context: CheckContext): Parsed<Entries<K, T>> =>
    isObject(raw) ? checkEntries(items, raw, context) : { fault: 'is not a map of names and values' }
  return {
    allowed: `a map of ${all.map(([name, item]) => `${name} (${item.allowed})`).join(', ')}`,
    example,
    secret: false,
    shape: {
      type: 'object',
      additionalProperties: false,
      properties: Object.fromEntries(all.map(([name, item]) => [name, item.shape])),
    },
    check,
    fromText: (text) => entriesFromText(text, items) ?? text,
    merge: (earlier, later) => ({ ...earlier, ...later }),
  }
}

/** One value for all names, or a map of them; names that a map leaves out keep the value of the layer before. */
export function oneOrMap<K extends string, T extends string | number>(
  names: readonly K[],
  item: Setting<T>,
  example: string,
): Setting<T | Entries<K, T>> {
  // All names are in it.
  const items = Object.fromEntries(names.map((name) => [name, item])) as Record<K, Setting<T>>
  const map = mapOf(items, example)
  const toEntries = (value: T | Entries<K, T>): Entries<K, T> =>
    // All names are in it.
    typeof value === 'object' ? value : (Object.fromEntries(names.map((name) => [name, value])) as Entries<K, T>)
  return {
    allowed: `${item.allowed}; or a map of ${names.join(', ')}`,
    example,
    secret: false,
    shape: { anyOf: [item.shape, map.shape] },
    check: (raw, context) => (isObject(raw) ? map.check(raw, context) : item.check(raw, context)),
    fromText: (text) => entriesFromText(text, items) ?? item.fromText(text),
    merge: (earlier, later) => (typeof later === 'object' ? { ...toEntries(earlier), ...later } : later),
  }
}

/** Returns the value for one name. */
export function valueFor<K extends string, T extends string | number>(
  value: T | Entries<K, T>,
  name: K,
): T | undefined {
  return typeof value === 'object' ? value[name] : value
}

function checkEntries<K extends string, T>(
  items: Readonly<Record<K, Setting<T>>>,
  raw: Readonly<Record<string, unknown>>,
  context: CheckContext,
): Parsed<Entries<K, T>> {
  const known = new Map(Object.entries<Setting<T>>(items))
  const values: Record<string, T> = {}
  for (const [name, value] of Object.entries(raw)) {
    const item = known.get(name)
    if (item === undefined)
      return { fault: `(entry ${name}) has a name that is none of ${[...known.keys()].join(', ')}` }
    const result = item.check(value, context)
    if ('fault' in result) return { fault: `(entry ${name}) ${result.fault}` }
    values[name] = result.value
  }
  return { value: values as Entries<K, T> } // each name is one of the items
}

/** Null: the text is no list of NAME=VALUE. */
function entriesFromText(text: string, items: Readonly<Record<string, Setting<unknown>>>): object | null {
  const parts = text.split(/[,\r\n]/).filter((part) => part.trim() !== '')
  const pairs = parts.map((part) => /^\s*(\w+)\s*=(.*)$/.exec(part))
  if (pairs.length === 0 || pairs.includes(null)) return null
  const entries = pairs.map((pair) => {
    const name = pair?.[1] ?? ''
    const value = (pair?.[2] ?? '').trim()
    return [name, items[name]?.fromText(value) ?? value] as const
  })
  return Object.fromEntries(entries)
}

const LIMIT = /^(\d{1,3}(?:\.\d{1,6})?)\s*%\s*and\s*(\d{1,8})$/

/** A limit that two figures have to exceed: a share, from 0 to 1, and a number. */
interface ShareAndCount {
  readonly share: number
  readonly count: number
}

/** Reads "10% and 20"; null when it is no limit. */
export function parseLimit(text: string): ShareAndCount | null {
  const [, percent = '', count = ''] = LIMIT.exec(text.trim()) ?? []
  const share = Number(percent) / 100
  const most = 10_000_000
  return percent === '' || share > 1 || Number(count) > most ? null : { share, count: Number(count) }
}

/** A share and a number, of which both have to be exceeded. */
export function shareAndCount(): Setting<string> {
  const allowed = 'a share and a number, such as 10% and 20; 100% is never exceeded'
  const check = (raw: unknown): Parsed<string> => {
    const limit = typeof raw === 'string' ? parseLimit(raw) : null
    if (limit === null) return { fault: 'is not a share from 0% to 100% and a number, such as 10% and 20' }
    return { value: `${Number((limit.share * 100).toFixed(6))}% and ${limit.count}` }
  }
  const shape = { type: 'string', pattern: LIMIT.source }
  return { allowed, example: '10% and 20', secret: false, shape, check, fromText: (text) => text }
}

const SPAN = /^(\d{1,4}(?:\.\d{1,3})?)\s*([hd])$/

/** Reads "7d" or "36h" as days; null when it is no span of time. */
export function parseDays(text: string): number | null {
  const [, digits = '', unit = ''] = SPAN.exec(text.trim()) ?? []
  if (digits === '') return Number(text.trim() || NaN) === 0 ? 0 : null
  return unit === 'h' ? Number(digits) / 24 : Number(digits)
}

/** A span of time in days or hours, at most that many days; 0 is none. */
export function span(most: number, example: string): Setting<string> {
  const check = (raw: unknown): Parsed<string> => {
    const days = typeof raw === 'string' || raw === 0 ? parseDays(String(raw)) : null
    if (days === null) return { fault: 'is not a number of days or hours with its unit' }
    return days > most ? { fault: 'is too long' } : { value: String(raw).trim() }
  }
  return {
    allowed: `days or hours up to ${most}d, such as 7d or 36h; 0 for none`,
    example,
    secret: false,
    shape: { type: ['string', 'integer'] },
    check,
    fromText: (text) => (numberFromText(text) === 0 ? 0 : text),
  }
}
