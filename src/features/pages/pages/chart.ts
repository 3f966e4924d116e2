import { nounOf } from '../../../base/text.ts'
import { DAY_MS } from '../../../base/time.ts'
import type { ChartBlock } from '../blocks.ts'
import { grouped } from '../../../answers/cells.ts'
import type { PageCall } from '../page.ts'

/** Days that the chart of changes shows. */
const DAYS = 30

/** Size of the drawing, in its own units. */
const WIDTH = DAYS * 10
const HEIGHT = 40
const BAR = 8

/** Returns the chart of names changed on each of the last days, from the change log of all sources. */
export function changesChart({ reads, now }: PageCall): ChartBlock {
  const today = Math.floor(now / DAY_MS)
  const first = today - DAYS + 1
  const byDay = new Map(reads.changes.countByDay(first * DAY_MS).map(({ day, names }) => [day, names]))
  const days = Array.from({ length: DAYS }, (_, at) => ({
    day: first + at,
    names: byDay.get(first + at) ?? 0,
  }))
  const most = Math.max(1, ...days.map(({ names }) => names))
  const total = days.reduce((sum, { names }) => sum + names, 0)
  const bars = days.map(({ day, names }, at) => {
    const height = names === 0 ? 0 : Math.max(1, Math.round((names / most) * HEIGHT * 10) / 10)
    const label = `${dateOf(day)}: ${grouped(names)}`
    return { x: at * 10 + 1, y: HEIGHT - height, height, label }
  })
  const busiest = `${grouped(most)} on the busiest day`
  return {
    kind: 'chart',
    title: 'Changes per day',
    text: `${grouped(total)} ${nounOf(total, 'change')} in ${DAYS} days, ${busiest}`,
    empty: `No counted changes in ${DAYS} days.`,
    bars,
    width: WIDTH,
    height: HEIGHT,
    barWidth: BAR,
    from: dateOf(first),
    to: dateOf(today),
  }
}

function dateOf(day: number): string {
  return new Date(day * DAY_MS).toISOString().slice(0, 10)
}
