import { type Setting, type Parsed, numberFromText, rangeFault } from './base.ts'

const UNITS = new Map([
  ['B', 1],
  ['KB', 1e3],
  ['MB', 1e6],
  ['GB', 1e9],
  ['TB', 1e12],
  ['KIB', 2 ** 10],
  ['MIB', 2 ** 20],
  ['GIB', 2 ** 30],
  ['TIB', 2 ** 40],
])

const SIZE = /^(\d+(?:\.\d+)?)\s*([KMGTkmgt]?[Ii]?[Bb])?$/

/** Reads "512 MB" (millions of bytes), "4 GiB" (powers of 1024) or "1000"; null when it is no size. */
export function parseBytes(size: string): number | null {
  const match = SIZE.exec(size.trim().toUpperCase())
  const factor = UNITS.get((match?.[2] ?? 'B').toUpperCase())
  if (match === null || factor === undefined) return null
  return Math.round(Number(match[1]) * factor) // 0.07 * 1e6 is a little above 70,000
}

/** A size in bytes: a whole number, or text with a unit. The limits are given the same way. */
export function bytes(limits: { min: string; max: string; example: string }): Setting<number> {
  const min = parseBytes(limits.min) ?? 0
  const max = parseBytes(limits.max) ?? 0
  const check = (raw: unknown): Parsed<number> => {
    const size = typeof raw === 'string' ? parseBytes(raw) : raw
    if (typeof size !== 'number' || !Number.isFinite(size)) return { fault: 'is not a size' }
    if (!Number.isInteger(size)) return { fault: 'is not a whole number of bytes' }
    const fault = rangeFault(size, min, max)
    return fault === null ? { value: size } : { fault }
  }
  const allowed = `a size from ${limits.min} to ${limits.max}, in bytes or with a unit (KB, MB, GB, KiB, MiB, GiB)`
  const size = { type: 'integer', minimum: min, maximum: max }
  const shape = { anyOf: [size, { type: 'string', pattern: SIZE.source }] }
  const { example } = limits
  return { allowed, example, secret: false, shape, check, fromText: numberFromText }
}
