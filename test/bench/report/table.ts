import { format, median } from './figures.ts'
import type { Goal, Measured, Value } from './group.ts'

const HEAD = ['| work | against | min | median | max | goal | | of the median |', '|---|---|---|---|---|---|---|---|']

/** Writes lines as a table of Markdown: one value where there was one run. */
export function markdown(lines: readonly Measured[]): string {
  return [...HEAD, ...lines.map(row)].join('\n')
}

function row({ work, against, unit, goal, values }: Measured): string {
  const numbers = values.map(({ value }) => value)
  const middle = values.find(({ value }) => value === median(numbers))
  const end = (value: number): string => (values.length > 1 ? format(value, unit) : '')
  const hasVerdict = goal !== null && middle !== undefined
  const cells = [
    work,
    against,
    end(Math.min(...numbers)),
    middle === undefined ? 'not measured' : format(middle.value, unit),
    end(Math.max(...numbers)),
    goal === null ? 'figure' : goalText(goal, (value) => format(value, unit)),
    hasVerdict ? verdictOf(goal, values) : '',
    middle?.detail ?? '',
  ]
  return `| ${cells.join(' | ')} |`
}

function verdictOf(goal: Goal, values: readonly Value[]): string {
  return isMet(goal, values) ? 'met' : '**missed**'
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
