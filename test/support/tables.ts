import { test } from 'vitest'

/**
 * Whether the long suite runs: every row of a table, more generated cases, and the tests of `longTest`. It runs every file
 * that imports this one (vitest.long.config.ts sets the variable, and finds the files).
 */
export const LONG = process.env['TEST_TABLES'] === 'whole'

/**
 * Registers a test that only the long suite runs: it is slow, and a faster test of the same property stays in the fast
 * suite. Registers nothing in the fast suite.
 */
export const longTest: (name: string, run: () => unknown) => void = LONG ? test : () => undefined

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
