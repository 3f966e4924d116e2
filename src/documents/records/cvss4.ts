/** Base metrics of CVSS 4 with their values, the worst first. */
const METRICS: Readonly<Record<string, string>> = {
  AV: 'NALP',
  PR: 'NLH',
  UI: 'NPA',
  AC: 'LH',
  AT: 'NP',
  VC: 'HLN',
  VI: 'HLN',
  VA: 'HLN',
  SC: 'HLN',
  SI: 'HLN',
  SA: 'HLN',
}

/** One class of vectors that are alike in some metrics: its worst ones, and how many steps there are to its mildest. */
interface Class {
  readonly worst: readonly string[]
  readonly depth: number
}

/** Metrics that are classed together (CVSS 4.0 specification, section 8.2 and tables 24 to 28); EQ3 and EQ6 are one here. */
interface Group {
  readonly metrics: readonly string[]
  /** The class of these metrics, of their places among the values. */
  readonly classOf: (ranks: readonly number[]) => number
  readonly classes: readonly Class[]
}

const isWorst = (rank: number): boolean => rank === 0

const GROUPS: readonly Group[] = [
  {
    metrics: ['AV', 'PR', 'UI'],
    classOf(ranks) {
      if (ranks.every(isWorst)) return 0
      return ranks[0] === 3 || !ranks.some(isWorst) ? 2 : 1
    },
    classes: [
      { worst: ['NNN'], depth: 1 },
      { worst: ['ANN', 'NLN', 'NNP'], depth: 4 },
      { worst: ['PNN', 'ALP'], depth: 5 },
    ],
  },
  {
    metrics: ['AC', 'AT'],
    classOf: (ranks) => (ranks.every(isWorst) ? 0 : 1),
    classes: [
      { worst: ['LN'], depth: 1 },
      { worst: ['HN', 'LP'], depth: 2 },
    ],
  },
  {
    metrics: ['VC', 'VI', 'VA'],
    classOf(ranks) {
      if (ranks.slice(0, 2).every(isWorst)) return 0
      return ranks.some(isWorst) ? 1 : 2
    },
    classes: [
      { worst: ['HHH'], depth: 7 },
      { worst: ['LHH', 'HLH'], depth: 8 },
      { worst: ['LLL'], depth: 10 },
    ],
  },
  {
    metrics: ['SC', 'SI', 'SA'],
    classOf: (ranks) => (ranks.some(isWorst) ? 0 : 1),
    classes: [
      { worst: ['HHH'], depth: 5 },
      { worst: ['LLL'], depth: 4 },
    ],
  },
]

/**
 * The scores of the worst vectors of all classes: a row for each of the first two groups, and in it for each of the other two. The
 * last four are those of the next class of the third group, which is of one that base metrics alone are never in.
 */
const SCORES: readonly (readonly number[])[] = [
  [10, 9.3, 9.3, 8.8, 7.9, 6.9, 9.6, 9, 9.2, 8],
  [9.5, 9.2, 9.2, 8.4, 7.1, 6.3, 9.2, 8.4, 8.2, 7],
  [9.4, 8.7, 8.6, 7.2, 6.5, 5.3, 8.9, 7.5, 7.6, 5.7],
  [9, 7.7, 7.4, 6.1, 5.8, 2.3, 7.7, 6.6, 5.9, 5.2],
  [8.6, 7, 7.2, 5.3, 4.7, 2.4, 7.4, 5.4, 5.7, 3.6],
  [7.3, 5.4, 6.1, 4.6, 2.4, 1, 6.1, 4.6, 5.1, 1.8],
]
const THIRD = 2
const NEXT_OF_THIRD = 6

/** Returns the base score of a CVSS 4 vector (CVSS-B); null for a text that is none. Other metrics in it do not count, as of CVSS 3. */
export function cvss4Score(vector: string): number | null {
  const [head = '', ...parts] = vector.trim().split('/')
  if (head !== 'CVSS:4.0') return null
  const given = new Map(parts.map((part) => part.split(':') as [string, string]))
  const rankOf = (metric: string): number => METRICS[metric]?.indexOf(given.get(metric) ?? '?') ?? -1
  if (Object.keys(METRICS).some((metric) => rankOf(metric) < 0)) return null
  const impacts = [...(GROUPS[THIRD]?.metrics ?? []), ...(GROUPS[THIRD + 1]?.metrics ?? [])]
  if (impacts.every((metric) => rankOf(metric) === 2)) return 0
  const ranks = GROUPS.map(({ metrics }) => metrics.map(rankOf))
  const classes = GROUPS.map(({ classOf }, at) => classOf(ranks[at] ?? []))
  const score = scoreOf(classes) ?? 0
  let lower = 1 // the class of the exploit's maturity, in which a vector without that metric is the worst
  let sum = 0
  for (const [at, group] of GROUPS.entries()) {
    const next = nextScore(classes, at)
    if (next === undefined) continue
    lower++
    sum += (score - next) * shareOf(group, classes[at] ?? 0, ranks[at] ?? [])
  }
  return Math.round((score - sum / lower) * 10 + 1e-6) / 10
}

function scoreOf([first = 0, second = 0, third = 0, fourth = 0]: readonly number[]): number | undefined {
  return SCORES[first * 2 + second]?.[third * 2 + fourth]
}

/** The score where one group is in its next milder class; undefined: there is none. */
function nextScore(classes: readonly number[], at: number): number | undefined {
  const [first = 0, second = 0, third = 0, fourth = 0] = classes
  if ((classes[at] ?? 0) + 1 >= (GROUPS[at]?.classes.length ?? 0)) return undefined
  if (at === THIRD) return SCORES[first * 2 + second]?.[NEXT_OF_THIRD + third * 2 + fourth]
  return scoreOf(classes.with(at, (classes[at] ?? 0) + 1))
}

/** How far metrics are from the worst of their class, as a share of the way to the mildest. */
function shareOf({ metrics, classes }: Group, of: number, ranks: readonly number[]): number {
  const { worst = [], depth = 1 } = classes[of] ?? {}
  const steps = worst.map((values) =>
    ranks.map((rank, at) => rank - (METRICS[metrics[at] ?? '']?.indexOf(values[at] ?? '') ?? 0)),
  )
  const own = steps.find((each) => each.every((step) => step >= 0)) ?? []
  return own.reduce((sum, step) => sum + step, 0) / depth
}
