import { counted } from '../core/text.ts'

/** Reasons not to believe a change, and what the records of each have in common. A setting of `guard` has each name. */
export const DOUBTS = {
  fixLowered: 'have a lower fixed version than before',
  rangesLost: 'lost affected versions or packages without a fix that says so',
  ecosystemChanged: 'moved to another ecosystem',
  severityChanged: 'have another severity than before',
  emptied: 'were emptied in place',
  withdrawn: 'would be withdrawn',
  futureModified: 'have a date of modification far in the future',
  notCompared: 'could not be compared with what is stored',
  incomparable: 'can no longer be compared, as was possible before',
} as const

export type Doubt = keyof typeof DOUBTS

/** Records of each kind that are named for one snapshot: with more changes the log names none. */
export const MOST_DOUBTED = 10_000

/** Ids of the records that a run published although its guard doubted them, of the kinds above their limits. */
export type DoubtedRecords = Readonly<Partial<Record<Doubt, readonly string[]>>>

/** A doubt about the change of one record. */
export interface PublishedDoubt {
  readonly kind: Doubt
  /** The snapshot that made the change, and the run that published it. */
  readonly snapshot: string
  readonly run: number
}

/** Returns what is said of so many records: of one it `has a lower fixed version than before`. */
export function doubtText(kind: Doubt, records: number): string {
  const text = DOUBTS[kind]
  return records === 1 ? text.replace(/^have /, 'has ').replace(/^were /, 'was ') : text
}

/** Returns what is said of one record that was published: `doubtful: it has a lower fixed version … (guard.fixLowered, run 4)`. */
export function doubtSentence({ kind, run }: Pick<PublishedDoubt, 'kind' | 'run'>): string {
  return `doubtful: it ${afterwards(doubtText(kind, 1), 'was')} (guard.${kind}, run ${run})`
}

/** Returns what is said of the records of a snapshot, one sentence a kind. */
export function doubtSummaries(run: number, doubted: DoubtedRecords): string[] {
  return doubtedKinds(doubted).map(([kind, ids]) => {
    const text = afterwards(doubtText(kind, ids.length), ids.length === 1 ? 'was' : 'were')
    return `doubtful: ${counted(ids.length, 'changed record')} ${text} (guard.${kind}, run ${run})`
  })
}

/** Returns the kinds that this version knows, each with its records. */
export function doubtedKinds(doubted: DoubtedRecords): [Doubt, readonly string[]][] {
  return (Object.keys(DOUBTS) as Doubt[]).flatMap((kind): [Doubt, readonly string[]][] => {
    const ids = doubted[kind] ?? []
    return ids.length === 0 ? [] : [[kind, ids]]
  })
}

function afterwards(text: string, verb: string): string {
  return text.replace(/^would be /, `${verb} `)
}
