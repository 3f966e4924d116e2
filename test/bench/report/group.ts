import { type Unit, pair } from './figures.ts'

/** A measured value, in the unit of its line. */
export interface Value {
  readonly value: number
  /** What the value was made of, such as both sides of a ratio. */
  readonly detail?: string
  /** The limit of the goal in this run, where it depends on what else was measured. */
  readonly limit?: number
}

/** What a line is to reach. */
export interface Goal {
  readonly kind: 'most' | 'least' | 'exactly'
  readonly limit: number
  /** Whether the median of the runs decides, or the worst of them. */
  readonly by: 'median' | 'worst'
  /** How the page gives it; default: the limit with its unit. */
  readonly text?: string
}

/** Goals by the median: ratios and times. */
export const atMost = (limit: number, text?: string): Goal => goal('most', limit, 'median', text)
export const atLeast = (limit: number, text?: string): Goal => goal('least', limit, 'median', text)
/** Goals that every run has to reach: memory, counts. */
export const neverOver = (limit: number, text?: string): Goal => goal('most', limit, 'worst', text)
export const always = (limit: number, text?: string): Goal => goal('exactly', limit, 'worst', text)

function goal(kind: Goal['kind'], limit: number, by: Goal['by'], text?: string): Goal {
  return { kind, limit, by, ...(text === undefined ? {} : { text }) }
}

/** One line of a group: what is measured, against what, its goal, and where it is in what a run returned. */
export interface Line<Run> {
  readonly work: string
  readonly against?: string
  readonly unit: Unit
  /** Missing where the line is only to have a figure. */
  readonly goal?: Goal
  /** Returns null where this machine cannot measure it. */
  readonly measure: (run: Run) => number | Value | null
}

/** How much is measured. */
export interface Options {
  readonly runs: number
  /** The number to take instead of the full one, when sizes are reduced. */
  readonly size: (full: number) => number
  /** Likewise for the length of a measurement, in seconds. */
  readonly seconds: (full: number) => number
}

/** What the runs of a group share. */
interface Closable {
  close(): Promise<void>
}

/** A group as it is written down: `run` is called several times, and takes both sides of each comparison in turn. */
interface Plan<World extends Closable, Run> {
  /** As in `--only NAME`. */
  readonly name: string
  /** What all lines share, in sentences. */
  readonly about: (options: Options) => string
  readonly prepare: (options: Options) => Promise<World>
  readonly run: (world: World, options: Options, number: number) => Promise<Run>
  readonly lines: (options: Options) => readonly Line<Run>[]
  /** What is below the group's table. */
  readonly more?: (runs: readonly Run[]) => More
}

/** A line with what its runs measured. */
export interface Measured {
  readonly work: string
  readonly against: string
  readonly unit: Unit
  readonly goal: Goal | null
  /** One for each run; none: not measured. */
  readonly values: readonly Value[]
}

/** Markdown below a table, and files beside the page that it names. */
export interface More {
  readonly text: string
  readonly files: Readonly<Record<string, string>>
}

/** What a group measured. */
export interface Section {
  readonly name: string
  readonly about: string
  readonly lines: readonly Measured[]
  readonly more: More
}

/** A group that can be measured. */
export interface Group {
  readonly name: string
  /** Its lines, without values. */
  list(options: Options): Section
  measure(options: Options): Promise<Section>
}

/** Makes a group of its plan. */
export function defineGroup<World extends Closable, Run>(plan: Plan<World, Run>): Group {
  const { name } = plan
  const section = (runs: readonly Run[], options: Options): Section => {
    const lines = plan.lines(options).map((line) => measuredOf(line, runs))
    const more = (runs.length > 0 && plan.more?.(runs)) || { text: '', files: {} }
    return { name, about: plan.about(options), lines, more }
  }
  return {
    name,
    list: (options) => section([], options),
    async measure(options) {
      say(`${name}: ${plan.about(options)}`)
      const world = await plan.prepare(options)
      const runs: Run[] = []
      try {
        for (let number = 0; number < options.runs; number++) {
          say(`${name}: run ${number + 1} of ${options.runs}`)
          runs.push(await plan.run(world, options, number))
        }
      } finally {
        await world.close()
      }
      return section(runs, options)
    },
  }
}

function measuredOf<Run>(line: Line<Run>, runs: readonly Run[]): Measured {
  const { work, against = '', unit, goal: target = null } = line
  const values = runs
    .map((run) => line.measure(run))
    .filter((value) => value !== null)
    .map((value) => (typeof value === 'number' ? { value } : value))
  return { work, against, unit, goal: target, values }
}

/** Compares two values, with both of them as the detail. */
export function ratio(ours: number, theirs: number, write: (value: number) => string): Value {
  return { value: ours / theirs, detail: pair(ours, theirs, write) }
}

function say(text: string): void {
  process.stderr.write(`${text}\n`)
}
