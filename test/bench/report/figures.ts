/** How a value is written. Values of `MB` are bytes, those of `s` and `ms` milliseconds, those of `%` shares of one. */
export type Unit = '×' | 'MB' | 's' | 'ms' | '/s' | '%' | 'count'

const FORMATS: Readonly<Record<Unit, (value: number) => string>> = {
  '×': (value) => `${value.toFixed(value < 0.1 ? 3 : 2)}×`,
  MB: megabytes,
  s: seconds,
  ms: (value) => `${value.toFixed(value < 100 ? 2 : 0)} ms`,
  '/s': (value) => `${value.toFixed(value < 100 ? 1 : 0)}/s`,
  '%': (value) => `${(value * 100).toFixed(2)} %`,
  count,
}

/** Formats a value with its unit. */
export function format(value: number, unit: Unit): string {
  return FORMATS[unit](value)
}

/** Writes two values of one unit, which is named once: `3.53/2.99 s`. */
export function pair(one: number, other: number, write: (value: number) => string): string {
  return `${withoutUnit(write(one))}/${write(other)}`
}

/** Returns the number of a written value: `1.18` of `1.18×`. */
export function withoutUnit(written: string): string {
  return written.replace(/[^\d.,]*$/, '')
}

/** Returns the value in the middle, the upper one of two. */
export function median(values: readonly number[]): number {
  const sorted = [...values].sort((a, b) => a - b)
  return sorted[Math.floor(sorted.length / 2)] ?? Number.NaN
}

/** Returns the value below which a share of the sorted values lies. */
export function percentile(sorted: readonly number[], share: number): number {
  return sorted[Math.floor(sorted.length * share)] ?? Number.NaN
}

/** Formats a number of things: 100,000. */
export function count(things: number): string {
  return things.toFixed(0).replace(/\B(?=(\d{3})+$)/g, ',')
}

/** Formats bytes in millions, with two decimals below ten of them. */
export function megabytes(bytes: number): string {
  return `${(bytes / 1e6).toFixed(bytes < 1e7 ? 2 : 0)} MB`
}

/** Formats milliseconds as seconds. */
export function seconds(ms: number): string {
  return `${(ms / 1000).toFixed(2)} s`
}

/** Formats milliseconds. */
export function milliseconds(ms: number): string {
  return FORMATS.ms(ms)
}
