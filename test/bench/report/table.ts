import { format, median, withoutUnit } from './figures.ts'
import type { Goal, Measured, Value } from './group.ts'

const HEAD = ['| work | against | median (range) | goal | of the median |', '|---|---|---|---|---|']

/** Writes lines as a table of Markdown. Work that is that of the line above is not named again. */
export function markdown(lines: readonly Measured[]): string {
  return [...HEAD, ...lines.map((line, at) => row(line, lines[at - 1]?.work))].join('\n')
}

/** Writes the median of the runs, and their range where they differ, without the unit: `1.18× (1.08–1.42)`. */
export function spread(numbers: readonly number[], write: (value: number) => string): string {
  if (numbers.length === 0) return 'not measured'
  const middle = write(median(numbers))
  const least = write(Math.min(...numbers))
  const most = write(Math.max(...numbers))
  return least === most ? middle : `${middle} (${withoutUnit(least)}–${withoutUnit(most)})`
}

function row({ work, against, unit, goal, values }: Measured, above?: string): string {
  const numbers = values.map(({ value }) => value)
  const middle = values.find(({ value }) => value === median(numbers))
  const write = (value: number): string => format(value, unit)
  const cells = [
    work === above ? '' : work,
    against,
    spread(numbers, write),
    goal === null ? '' : goalText(goal, write) + verdictOf(goal, values),
    middle?.detail ?? '',
  ]
  return `| ${cells.join(' | ')} |`
}

function verdictOf(goal: Goal, values: readonly Value[]): string {
  return values.length === 0 || isMet(goal, values) ? '' : ', **missed**'
}

const SIGNS = { most: '≤ ', least: '≥ ', exactly: '' }

function goalText({ kind, limit, text }: Goal, write: (value: number) => string): string {
  return text ?? SIGNS[kind] + write(limit).replace(/\.?0+(?=[^.\d]|$)/, rounded)
}

/** Takes zeros away behind a decimal point only. */
function rounded(zeros: string, at: number, whole: string): string {
  return whole.slice(0, at).includes('.') || zeros.startsWith('.') ? '' : zeros
}

/** Whether the values reach a goal; one that has a limit of its own is compared with that. */
export function isMet({ kind, limit, by }: Goal, values: readonly Value[]): boolean {
  const shares = values.map((one) => distance(kind, one.value, one.limit ?? limit))
  return (by === 'median' ? median(shares) : Math.max(...shares)) <= 0
}

/** How far a value is from its limit; 0 and less: it is within. */
function distance(kind: Goal['kind'], value: number, limit: number): number {
  if (kind === 'most') return value - limit
  return kind === 'least' ? limit - value : Math.abs(value - limit)
}
