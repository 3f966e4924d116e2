/** Lines of aligned columns, two spaces apart, under a head. */
export function table(head: readonly string[], rows: readonly (readonly string[])[]): string {
  const all = [head, ...rows.map((row) => row.map(visible))]
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
    const end = space > width / 2 ? space : width
    parts.push(rest.slice(0, end))
    rest = rest.slice(end).trimStart()
  }
  return [...parts, rest]
}

/** A duration in its two largest units: `3 h 12 min`. */
export function duration(seconds: number): string {
  if (seconds < 60) return `${Math.max(0, Math.round(seconds))} s`
  const minutes = Math.floor(seconds / 60)
  if (minutes < 60) return `${minutes} min`
  const hours = Math.floor(minutes / 60)
  return hours < 48
    ? `${hours} h ${minutes % 60} min`
    : `${Math.floor(hours / 24)} d ${hours % 24} h`
}

/** Unix milliseconds as UTC to the second: `2026-05-01 12:00:00Z`; `-` for null. */
export function timeOf(at: number | null): string {
  return at === null ? '-' : `${new Date(at).toISOString().slice(0, 19).replace('T', ' ')}Z`
}
