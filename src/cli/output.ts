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
