import { count as thousands, format, median, megabytes, type Unit } from '../report/figures.ts'
import { spread } from '../report/table.ts'
import { type Series, drawChart, short } from './chart.ts'
import type { Kind, Point } from './point.ts'

const NAMES: Readonly<Record<Kind, string>> = {
  sorted: 'records, sorted',
  shuffled: 'records, random order',
  tickets: 'tickets',
}
const QUANTITIES = ['ms', 'peak', 'disk'] as const
type Quantity = (typeof QUANTITIES)[number]
const UNITS: Readonly<Record<Quantity, Unit>> = { ms: 's', peak: 'MB', disk: 'MB' }
const TITLES: Readonly<Record<Quantity, string>> = {
  ms: 'Time of the first sync',
  peak: 'Peak memory',
  disk: 'Data folder',
}

/** Points of the same kind and size, one for each run, in the order of the first run. */
function gathered(runs: readonly (readonly Point[])[]): Point[][] {
  return [...Map.groupBy(runs.flat(), ({ kind, count }) => `${kind} ${count}`).values()]
}

/** Writes all measured sizes as a table of Markdown. */
export function tableOf(runs: readonly (readonly Point[])[]): string {
  const rows = gathered(runs).map((points) => {
    const { kind, count } = points[0] as Point // a group has one at least
    const cells = QUANTITIES.map((quantity) => {
      const values = points.map((point) => point[quantity])
      return spread(values, (value) => format(value, UNITS[quantity]))
    })
    return `| ${[NAMES[kind], thousands(count), ...cells].join(' | ')} |`
  })
  const head = '| first sync of | number | time | peak memory | data folder |\n|---|---|---|---|---|'
  return [head, ...rows].join('\n')
}

/** Draws time, memory and disk by the number of items. */
export function chartOf(runs: readonly (readonly Point[])[]): string {
  const groups = gathered(runs)
  const series = (quantity: Quantity): Series[] =>
    (Object.keys(NAMES) as Kind[]).map((kind) => {
      const own = groups.filter(([first]) => first?.kind === kind)
      const points = own.map((same) => ({ x: same[0]?.count ?? 0, ...ends(same, quantity) }))
      return { name: NAMES[kind], points: points.sort((a, b) => a.x - b.x) }
    })
  const panels = QUANTITIES.map((quantity) => {
    const write = quantity === 'ms' ? inSeconds : megabytesShort
    return { title: TITLES[quantity], write, series: series(quantity) }
  })
  const sizes = [...new Set(runs.flat().map(({ count }) => short(count)))].join(', ')
  const about = `Time, peak memory and size of the data folder of first syncs of ${sizes} items, both axes logarithmic.`
  return drawChart('First syncs by their size', about, panels)
}

function ends(points: readonly Point[], quantity: Quantity) {
  const values = points.map((point) => point[quantity])
  return { low: Math.min(...values), middle: median(values), high: Math.max(...values) }
}

function inSeconds(ms: number): string {
  return `${Number((ms / 1000).toPrecision(2))} s`
}

function megabytesShort(bytes: number): string {
  return bytes >= 1e9 ? `${Number((bytes / 1e9).toPrecision(2))} GB` : megabytes(bytes)
}
