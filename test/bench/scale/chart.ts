/** One series of a panel: its points in order of x, each with the lowest and highest of its runs. */
export interface Series {
  readonly name: string
  readonly points: readonly Point[]
}

interface Point {
  readonly x: number
  readonly low: number
  readonly middle: number
  readonly high: number
}

/** One quantity against the number of items. Both axes are logarithmic. */
export interface Panel {
  readonly title: string
  readonly write: (value: number) => string
  readonly series: readonly Series[]
}

const WIDTH = 960
const HEIGHT = 330
const TOP = 64
const BOTTOM = 290
const LEFT = 64
const RIGHT = 16
/** Largest number of lines across a panel. */
const FEW = 6

/** Both grounds: GitHub shows an image on the page's own. Colours are told apart without colour vision, too. */
const STYLE = `
text { font: 12px system-ui, sans-serif; fill: #1f2328 }
.title { font-weight: 600; font-size: 14px } .soft { fill: #59636e }
.grid { stroke: #d1d9e0; stroke-width: 1 } .line { fill: none; stroke-width: 2 } .range { stroke-width: 2 }
.s0 { stroke: #0969da } .s1 { stroke: #bc4c00; stroke-dasharray: 6 3 } .s2 { stroke: #1a7f37; stroke-dasharray: 2 3 }
line.range { stroke-dasharray: none }
.d0 { fill: #0969da } .d1 { fill: #bc4c00 } .d2 { fill: #1a7f37 }
@media (prefers-color-scheme: dark) {
text { fill: #f0f6fc } .soft { fill: #9198a1 } .grid { stroke: #3d444d }
.s0 { stroke: #4493f8 } .s1 { stroke: #f0883e } .s2 { stroke: #3fb950 }
.d0 { fill: #4493f8 } .d1 { fill: #f0883e } .d2 { fill: #3fb950 } }`

/** Draws panels side by side as one SVG, readable on light and dark grounds. `about`: a sentence for those who cannot see it. */
export function drawChart(title: string, about: string, panels: readonly Panel[]): string {
  const width = WIDTH / panels.length
  const names = [...new Set(panels.flatMap(({ series }) => series.map(({ name }) => name)))]
  const drawn = panels.map((panel, at) => drawPanel(panel, at * width, width, names))
  return [
    `<svg xmlns="http://www.w3.org/2000/svg" viewBox="0 0 ${WIDTH} ${HEIGHT}" role="img" aria-labelledby="t d">`,
    `<title id="t">${escaped(title)}</title><desc id="d">${escaped(about)}</desc>`,
    `<style>${STYLE}</style>`,
    ...drawn,
    legend(names),
    '</svg>\n',
  ].join('\n')
}

/** A logarithmic axis: where a value is, and the values that get a line. */
interface Axis {
  readonly at: (value: number) => number
  readonly ticks: readonly number[]
}

function drawPanel(panel: Panel, from: number, width: number, names: readonly string[]): string {
  const points = panel.series.flatMap(({ points: own }) => own)
  const xs = axis(
    points.map(({ x }) => x),
    from + LEFT,
    from + width - RIGHT,
  )
  const ys = axis(
    points.flatMap(({ low, high }) => [low, high]),
    BOTTOM,
    TOP,
  )
  const left = from + LEFT
  const right = from + width - RIGHT
  return [
    text(left, TOP - 14, panel.title, 'title', 'start'),
    ...ys.ticks.map((value) => rule(left, ys.at(value), right, ys.at(value))),
    ...ys.ticks.map((value) => text(left - 6, ys.at(value) + 4, panel.write(value), 'soft', 'end')),
    ...xs.ticks.map((value) => rule(xs.at(value), TOP, xs.at(value), BOTTOM)),
    ...xs.ticks.map((value) => text(xs.at(value), BOTTOM + 18, short(value), 'soft', 'middle')),
    text((left + right) / 2, BOTTOM + 36, 'number of items', 'soft', 'middle'),
    ...panel.series.map((one) => drawSeries(one, names.indexOf(one.name), xs, ys)),
  ].join('\n')
}

function drawSeries({ name, points }: Series, number: number, xs: Axis, ys: Axis): string {
  const places = points.map(({ x, middle }) => `${fixed(xs.at(x))},${fixed(ys.at(middle))}`)
  const marks = points.flatMap(({ x, low, middle, high }) => [
    `<line class="range s${number}" x1="${fixed(xs.at(x))}" x2="${fixed(xs.at(x))}" y1="${fixed(ys.at(low))}" y2="${fixed(ys.at(high))}"/>`,
    `<circle class="d${number}" cx="${fixed(xs.at(x))}" cy="${fixed(ys.at(middle))}" r="3.5"/>`,
  ])
  const line = `<polyline class="line s${number}" points="${places.join(' ')}"/>`
  return [`<g><title>${escaped(name)}</title>`, line, ...marks, '</g>'].join('')
}

function legend(names: readonly string[]): string {
  return names
    .map((name, at) => {
      const x = LEFT + at * 240
      const line = `<line class="line s${at}" x1="${x}" x2="${x + 28}" y1="20" y2="20"/>`
      const dot = `<circle class="d${at}" cx="${x + 14}" cy="20" r="3.5"/>`
      return line + dot + text(x + 36, 24, name, '', 'start')
    })
    .join('\n')
}

/** Spans the values with some room, so that no point is on the edge. */
function axis(values: readonly number[], from: number, to: number): Axis {
  const low = Math.min(...values) / 1.3
  const high = Math.max(...values) * 1.3
  const span = Math.log(high / low)
  return {
    at: (value) => from + ((to - from) * Math.log(value / low)) / span,
    ticks: ticksOf(low, high),
  }
}

/** Steps within a power of ten, the finest first. */
const STEPS: readonly (readonly number[])[] = [[1, 1.5, 2, 2.5, 3, 4, 5, 7], [1, 2, 5], [1]]

/** The finest steps that are not too many. */
function ticksOf(low: number, high: number): number[] {
  const powers: number[] = []
  for (let power = Math.floor(Math.log10(low)); power <= Math.log10(high); power++) powers.push(10 ** power)
  const within = (steps: readonly number[]): number[] =>
    powers.flatMap((power) => steps.map((step) => power * step)).filter((value) => value >= low && value <= high)
  const ticks = STEPS.map(within)
  return ticks.find(({ length }) => length <= FEW) ?? ticks.at(-1) ?? []
}

function text(x: number, y: number, content: string, name: string, anchor: string): string {
  return `<text class="${name}" x="${fixed(x)}" y="${fixed(y)}" text-anchor="${anchor}">${escaped(content)}</text>`
}

function rule(x1: number, y1: number, x2: number, y2: number): string {
  return `<line class="grid" x1="${fixed(x1)}" y1="${fixed(y1)}" x2="${fixed(x2)}" y2="${fixed(y2)}"/>`
}

/** 400000 as `400 k`. */
export function short(value: number): string {
  if (value >= 1e6) return `${value / 1e6} M`
  return value >= 1e3 ? `${value / 1e3} k` : String(value)
}

function fixed(value: number): string {
  return value.toFixed(1)
}

function escaped(content: string): string {
  return content.replaceAll('&', '&amp;').replaceAll('<', '&lt;').replaceAll('"', '&quot;')
}
