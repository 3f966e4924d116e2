import { test as bothTest, type TestAPI } from 'vitest'

/**
 * Whether the long suite runs: every row of a table, more generated cases, and the tests of `longTest`. It runs the files
 * that import this one (vitest.long.config.ts sets the variable, and finds the files).
 */
export const LONG = process.env['TEST_TABLES'] === 'whole'

/** Registers nothing, however it is called: `nothing(name, run)`, `nothing.each(rows)(name, run)`, `nothing.skipIf(absent)(name, run)`. */
const nothing: unknown = new Proxy(() => undefined, { get: () => nothing, apply: () => nothing })

/**
 * Registers a test that only the long suite runs: it takes more than 0.2 s on a quiet machine, and is not the only one of its
 * `describe`. Registers nothing in the fast suite.
 */
export const longTest: TestAPI = LONG ? bothTest : (nothing as TestAPI)

/** Registers a test that only the fast suite runs: in the long one it would find nothing more. */
export const test: TestAPI = LONG ? (nothing as TestAPI) : bothTest

/** Registers a test that both suites run, with more rows or cases in the long one. */
export { bothTest }

/**
 * Returns the rows that a suite runs: in the fast suite those with these names, each of another kind than the others; in the
 * long suite all of them.
 */
export function telling<Row extends string | readonly [string, ...unknown[]]>(
  rows: readonly Row[],
  ...names: readonly string[]
): Row[] {
  const nameOf = (row: Row): string => (typeof row === 'string' ? row : row[0])
  const missing = names.filter((name) => !rows.some((row) => nameOf(row) === name))
  if (missing.length > 0) throw new Error(`the table has no row ${missing.join(', ')}`)
  return LONG ? [...rows] : rows.filter((row) => names.includes(nameOf(row)))
}
