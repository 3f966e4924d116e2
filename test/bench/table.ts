/** One line of the table: what was measured, against what, and the goal where there is one. */
export interface Line {
  work: string
  against: string
  /** As measured, with its unit. */
  figure: string
  goal: string
  /** Null where the goal is only to have a figure. */
  met: boolean | null
}

export function ratioLine(
  work: string,
  against: string,
  ratio: number,
  goal: number,
  detail: string,
): Line {
  const figure = `${ratio.toFixed(2)}× (${detail})`
  return { work, against, figure, goal: `≤ ${goal}×`, met: ratio <= goal }
}

export function markdown(lines: readonly Line[]): string {
  const rows = lines.map(({ work, against, figure, goal, met }) => {
    const mark = met === null ? '' : met ? 'met' : '**missed**'
    return `| ${work} | ${against} | ${figure} | ${goal} | ${mark} |`
  })
  return ['| work | against | measured | goal | |', '|---|---|---|---|---|', ...rows].join('\n')
}

export function median(values: readonly number[]): number {
  const sorted = [...values].sort((a, b) => a - b)
  return sorted[Math.floor(sorted.length / 2)] ?? Number.NaN
}

/** The value below which a share of the sorted values lies. */
export function percentile(sorted: readonly number[], share: number): number {
  return sorted[Math.floor(sorted.length * share)] ?? Number.NaN
}

export function megabytes(bytes: number): string {
  return `${Math.round(bytes / 1e6)} MB`
}

export function seconds(ms: number): string {
  return `${(ms / 1000).toFixed(2)} s`
}
