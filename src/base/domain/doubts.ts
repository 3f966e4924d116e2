import { counted } from '../text.ts'

/** What is counted of a kind of doubt. */
type Counted = 'record' | 'document' | 'finding' | 'tag' | 'statement' | 'patch' | 'component' | 'entry' | 'item'

/** A reason not to believe a change. */
interface DoubtKind {
  /** What the counted ones have in common: `lost affected versions`. */
  readonly text: string
  readonly of: Counted
  /** What `guard.mode: enforce` does above the limits: honest feeds do some kinds in mass, which are only reported. */
  readonly above: 'refuse' | 'report'
  /** How many times the share of `guard.limit` for changes is the limit: honest feeds do some kinds more often than others. */
  readonly times: number
  /** Whether the first one is reported, since single ones are strange. */
  readonly isStrange: boolean
}

const hides = { of: 'record', above: 'refuse', times: 1, isStrange: false } as const
const strange = { ...hides, above: 'report', isStrange: true } as const

/** The kinds of doubt, by their names. */
export const DOUBTS = {
  affectedLost: { ...hides, text: 'have fewer affected versions than before' },
  emptied: { ...hides, text: 'were emptied in place' },
  withdrawn: { ...hides, times: 10, text: 'would be withdrawn' },
  removed: { ...hides, times: 10, text: 'would be removed' },
  nameDisguised: {
    ...hides,
    isStrange: true,
    text: 'have a name with look-alike or invisible characters',
  },
  aliasesLost: { ...hides, text: 'lost aliases' },
  incomparable: { ...hides, text: 'can no longer be compared, as was possible before' },
  idsChanged: { ...hides, above: 'report', text: 'have other aliases or upstream ids than before' },
  idsRuledOut: { ...hides, text: 'have new aliases or upstream ids, which mirrored VEX rules out' },
  firstListed: {
    ...hides,
    above: 'report',
    times: 10,
    text: 'have a first list of versions, and no ranges that can be compared',
  },
  releaseEnded: { ...hides, above: 'report', text: 'lost an older release of a distribution' },
  firstFixed: { ...hides, above: 'report', times: 10, text: 'have a first fixed version' },
  severityLowered: {
    ...hides,
    above: 'report',
    times: 5,
    text: 'have a lower severity than before',
  },
  futureModified: { ...strange, text: 'have a date of modification far in the future' },
  notCompared: { ...strange, of: 'document', text: 'could not be compared with what is stored' },
  vexRuledOut: { ...hides, of: 'finding', times: 10, text: 'would be ruled out by VEX' },
  vexStated: {
    ...hides,
    of: 'statement',
    above: 'report',
    times: 10,
    text: 'would newly rule something out',
  },
  patchesDone: { ...hides, of: 'patch', above: 'report', times: 10, text: 'would be done' },
  entriesLost: { ...hides, of: 'entry', text: 'have a lower fixed version, or would be removed' },
  entriesEnded: {
    ...hides,
    of: 'entry',
    above: 'report',
    text: 'would be removed with their release',
  },
  sbomShrunk: {
    ...hides,
    of: 'component',
    times: 10,
    text: 'would be missing, or of another source, release or version, in the SBOM of the same image',
  },
  sbomReplaced: {
    ...hides,
    of: 'component',
    above: 'report',
    times: 10,
    text: 'would be missing, or of another source or release, in an SBOM with others, or of another image',
  },
  findingsLost: {
    ...hides,
    of: 'finding',
    times: 10,
    text: 'would be gone with packages that the SBOM of the same image does not have any more as they were',
  },
  findingsReplaced: {
    ...hides,
    of: 'finding',
    above: 'report',
    times: 75,
    text: 'would be gone with packages that another image does not have as they were',
  },
  itemsRemoved: { ...hides, of: 'item', times: 10, text: 'would be removed' },
  tagsCleared: { ...hides, of: 'tag', times: 50, text: 'would lose most of their findings with another image' },
} as const satisfies Record<string, DoubtKind>

/** The name of a kind of doubt. */
export type Doubt = keyof typeof DOUBTS

/** Items of each kind that are named for one snapshot: with more changes the log names none. */
export const MOST_DOUBTED = 10_000

/** Ids of what a run published although its guard doubted it, of the kinds above their limits. */
export type DoubtedRecords = Readonly<Partial<Record<Doubt, readonly string[]>>>

/** How many items of each kind are doubted, where they are not records. */
export type DoubtCounts = Readonly<Partial<Record<Doubt, number>>>

/** A doubt about the change of one record, or of another thing with a name. */
export interface PublishedDoubt {
  readonly kind: Doubt
  /** The snapshot that made the change, and the run that published it. */
  readonly snapshot: string
  readonly run: number
  /** Present: an operator approved it. */
  readonly approved?: true
}

/** Returns what is said of so many: of one record it `has a lower severity than before`. */
export function doubtText(kind: Doubt, count: number): string {
  const { text } = DOUBTS[kind]
  if (count !== 1) return text
  return text.replace(/^have /, 'has ').replace(/^were /, 'was ')
}

/** Returns a number of what a kind counts: `3 records`. */
export function doubtedCount(kind: Doubt, count: number): string {
  const { of } = DOUBTS[kind]
  return counted(count, of, PLURALS[of])
}

const PLURALS: Readonly<Record<Counted, string>> = {
  record: 'records',
  document: 'documents',
  finding: 'findings',
  tag: 'tags',
  statement: 'statements',
  patch: 'patches',
  component: 'components',
  entry: 'entries',
  item: 'items',
}

/** Returns what is said of one that was published: `doubtful: it has a lower severity than before (severityLowered, run 4)`. */
export function doubtSentence({ kind, run, approved }: Omit<PublishedDoubt, 'snapshot'>): string {
  return `${markOf(approved === true)}: it ${afterwards(doubtText(kind, 1), 'was')} (${kind}, run ${run})`
}

/** How a doubt begins that was published: the guard had refused what an operator approved. */
function markOf(isApproved: boolean): string {
  return isApproved ? 'doubtful, and approved' : 'doubtful'
}

/** What a run published although its guard doubted it. */
export interface DoubtedSnapshot {
  readonly run: number
  readonly doubted: DoubtedRecords
  /** How many items these are, where they are not the names themselves. */
  readonly counts?: DoubtCounts
  /** The kinds that an operator approved; absent: none. */
  readonly approved?: readonly Doubt[]
}

/** Returns what is said of the items of a snapshot, one sentence a kind. */
export function doubtSummaries({ run, doubted, counts = {}, approved = [] }: DoubtedSnapshot): string[] {
  return doubtedKinds(doubted, counts).map(([kind, ids]) => {
    const count = counts[kind] ?? ids.length
    const text = afterwards(doubtText(kind, count), count === 1 ? 'was' : 'were')
    return `${markOf(approved.includes(kind))}: ${doubtedCount(kind, count)} ${text} (${kind}, run ${run})`
  })
}

/**
 * Returns the news of a run that published what is doubtful, one sentence a kind: `161 more findings are ruled out by VEX since
 * the run of 2026-05-01 10:05 UTC`. `at`: ISO 8601.
 */
export function doubtNews(counts: readonly (readonly [Doubt, number])[], at: string): string[] {
  const since = `since the run of ${at.slice(0, 16).replace('T', ' ')} UTC`
  return counts.map(([kind, count]) => {
    const many = doubtedCount(kind, count).replace(/^(\d+) /, '$1 more ')
    return `${many} ${afterwards(doubtText(kind, count), count === 1 ? 'is' : 'are')} ${since}`
  })
}

/** Returns the kinds that this version knows, each with its items; none are known of what another mirror doubted. */
export function doubtedKinds(doubted: DoubtedRecords, counts: DoubtCounts = {}): [Doubt, readonly string[]][] {
  return (Object.keys(DOUBTS) as Doubt[]).flatMap((kind): [Doubt, readonly string[]][] => {
    const ids = doubted[kind] ?? []
    return ids.length === 0 && (counts[kind] ?? 0) === 0 ? [] : [[kind, ids]]
  })
}

function afterwards(text: string, verb: string): string {
  return text.replace(/^would be /, `${verb} `)
}
