import type { PageFigures } from '../../server/status/routes.ts'

/** All that the page shows besides what is counted. */
export interface Figures extends PageFigures {
  /** Certificates that the daemon serves with; `expiresAt` in Unix milliseconds. */
  readonly certificates: readonly { readonly name: string; readonly expiresAt: number }[]
}

/** How long events took, from being received to each of these, milliseconds. */
export const STAGES = ['stored', 'refreshed', 'visible'] as const

/** One series of a metric: its value (null: not shown), then the values of its labels. */
export type Sample = readonly [value: number | null, ...labels: string[]]

/** One metric of the page. */
export type Metric = readonly [
  name: string,
  help: string,
  /** A `counter` here is kept elsewhere: the page shows the value that it has there. */
  type: 'gauge' | 'counter',
  labels: readonly string[],
  series: (figures: Figures) => readonly Sample[],
]
