type Row = readonly string[]

/** Least width of the column whose texts are broken to fit, and least width of a terminal that is respected, characters. */
const LEAST_WIDTH = 24

/** Returns the width of the terminal, characters; no limit for a pipe or a file. */
function terminalWidth({ isTTY, columns }: Partial<typeof process.stdout> = process.stdout): number {
  return isTTY === true && columns !== undefined && columns > 0 ? columns : Infinity
}

/**
 * Lines of aligned columns, two spaces apart, under a head. On a terminal no line is longer than `width`: the column that does not
 * fit is broken into lines, or, where less than 24 characters are left for it, moved with those behind it below its row, as
 * `name: value`. Columns are therefore given in the order of their importance.
 */
export function table(head: Row, rows: readonly Row[], width = terminalWidth()): string {
  const shown = rows.map((row) => row.map(visible))
  const limit = Math.max(width, LEAST_WIDTH)
  const widths = head.map((_, at) => Math.max(...[head, ...shown].map((row) => row[at]?.length ?? 0)))
  const ends = widths.map((_, at) => widths.slice(0, at + 1).reduce((sum, one) => sum + one, 2 * at))
  const fitting = ends.filter((end) => end <= limit).length
  if (fitting === head.length) return aligned([head, ...shown])
  const left = limit - (fitting === 0 ? 0 : (ends[fitting - 1] ?? 0) + 2)
  const kept = left >= LEAST_WIDTH ? fitting + 1 : fitting
  const limits = widths.slice(0, kept).map((own, at) => (at === fitting ? left : own))
  const blocks = shown.map((row) => wrapped(row.slice(0, kept), limits))
  const lines = aligned([head.slice(0, kept), ...blocks.flat()]).split('\n')
  const [first = '', ...others] = lines
  return [
    first,
    ...blocks.flatMap((block, at) => [
      ...others.splice(0, block.length),
      ...below(head.slice(kept), shown[at]?.slice(kept) ?? [], limit),
    ]),
  ].join('\n')
}

/** The columns that do not fit, in lines of their own; without those that have no value. */
function below(names: Row, values: Row, width: number): string[] {
  const named = names.flatMap((name, at) =>
    ['', '-'].includes(values[at] ?? '') ? [] : [`${name}: ${values[at] ?? ''}`],
  )
  return named.length === 0 ? [] : partsOf(named.join('  '), width - 2).map((part) => `  ${part}`)
}

function aligned(all: readonly Row[]): string {
  const [head = []] = all
  const widths = head.map((_, column) => Math.max(...all.map((row) => (row[column] ?? '').length)))
  return all
    .map((row) =>
      row
        .map((cell, column) => cell.padEnd(widths[column] ?? 0))
        .join('  ')
        .trimEnd(),
    )
    .join('\n')
}

/** A text in one line that cannot move the cursor of a terminal: reports of runs contain texts from upstream. */
export function visible(text: string): string {
  return text.replace(/\p{C}+/gu, ' ')
}

/** The same for a text of several lines. */
export function visibleLines(text: string): string {
  return text.split('\n').map(visible).join('\n')
}

/** A text cut to `longest` characters. */
export function cut(text: string, longest: number): string {
  return text.length > longest ? `${text.slice(0, longest - 1)}…` : text
}

/** Returns a row as several, each cell broken at its width: what does not fit continues in the row below. */
export function wrapped(cells: readonly string[], widths: readonly number[]): string[][] {
  const parts = cells.map((cell, column) => partsOf(visible(cell), widths[column] ?? Infinity))
  const lines = Math.max(...parts.map(({ length }) => length))
  return Array.from({ length: lines }, (_, line) => parts.map((part) => part[line] ?? ''))
}

/** Breaks a text at spaces, and within words that are longer than the width. */
function partsOf(text: string, width: number): string[] {
  const parts: string[] = []
  let rest = text
  while (rest.length > width) {
    const space = rest.lastIndexOf(' ', width)
    const [word = ''] = rest.slice(space + 1).split(' ', 1)
    const end = space > 0 && (space > width / 2 || word.length <= width) ? space : width
    parts.push(rest.slice(0, end))
    rest = rest.slice(end).trimStart()
  }
  return [...parts, rest]
}

/** Unix milliseconds as UTC to the second: `2026-05-01 12:00:00Z`; `-` for null. */
export function timeOf(at: number | null): string {
  return at === null ? '-' : `${new Date(at).toISOString().slice(0, 19).replace('T', ' ')}Z`
}
