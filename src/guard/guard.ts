import type { Config } from '../config/schema.ts'
import { sha256Of } from '../core/digest.ts'
import { counted, percent, plainText } from '../core/text.ts'
import { DAY_MS, parseDate } from '../core/time.ts'
import { recordSentences } from '../differences/words.ts'
import {
  DOUBTS,
  type Doubt,
  type DoubtedRecords,
  MOST_DOUBTED,
  doubtText,
} from '../domain/doubts.ts'
import { eachObject, fieldsOf } from '../json/objects.ts'
import { isHarmless } from './harmless.ts'
import { type RecordDoubt, doubtsAbout } from './kinds.ts'
import {
  type BeforeAndAfter,
  type ParsedVersion,
  type Version,
  createPairBatch,
} from './versions.ts'

type Limits = Config['guard']

/** Events of ranges that one run compares, beside some for each stored record: its comparisons have the write lock. */
const EVENTS = 200_000
const EVENTS_OF_RECORD = 200
/** Records of each kind that are named. */
const LISTED = 20
/** Sentences about one record that are named. */
const SENTENCES = 3

/** What is to be believed of the changes that a run would publish. */
export interface RecordVerdict {
  /** Why the run must not publish them; null: it may. */
  readonly refusal: string | null
  /** What is published all the same; null: nothing. */
  readonly warning: string | null
  /** Digest of the refused records and their contents, so that the same ones are recognized whatever else changes. */
  readonly identity: Buffer
  /** Number of records by kind, and the first records of each with what changed, for the kinds above their limits. */
  readonly doubts: number
  readonly lines: readonly string[]
  /** Ids of the records of these kinds. */
  readonly doubted: DoubtedRecords
  /** Number of records that could not be compared. */
  readonly notCompared: number
}

/** Judges the records of one run, one after the other. */
export interface RecordGuard {
  /**
   * Compares a record that is about to be stored, with its stamp in the index, with the stored one; null: there is none.
   * `stampBefore` is asked only for a stamp that is far in the future.
   */
  see(
    after: Version & { readonly id: string; readonly modified: string },
    before: Version | null,
    stampBefore: () => string | null,
  ): void
  /** Notes a stored record that is to be removed because of its new content, whose stamp is `modified`. */
  leave(id: string, modified: string, because: string): void
  verdict(): RecordVerdict
}

/** What was found of one kind. Of the refused kinds each record's id and digest is kept: about 90 bytes a record. */
interface Found {
  count: number
  readonly ids: string[]
  readonly lines: string[]
  readonly contents: string[]
}

/** A record that was seen: its id, its digest and the stamps that may be in the future. */
interface Seen {
  readonly id: string
  readonly content: string
  readonly stamps: unknown[]
}

/** Returns whether any kind of doubt is looked for. */
export function isGuarding(limits: Limits): boolean {
  return KINDS.some((kind) => limits[kind] !== 'off')
}

const KINDS = Object.keys(DOUBTS) as Doubt[]

/** Creates a guard for one run. `stored`: number of records before it; `now`: Unix milliseconds. */
export function createRecordGuard(limits: Limits, stored: number, now: number): RecordGuard {
  const found = new Map<Doubt, Found>(
    KINDS.map((kind) => [kind, { count: 0, ids: [], lines: [], contents: [] }]),
  )
  const note = (id: string, content: string, { kind, because }: RecordDoubt): void => {
    const into = found.get(kind)
    if (into === undefined || limits[kind] === 'off') return
    into.count++
    if (into.ids.length < MOST_DOUBTED) into.ids.push(id)
    if (into.lines.length < LISTED) into.lines.push(`${id}: ${wordsOf(because)}`)
    if (limits[kind] === 'enforce') into.contents.push(`${id} ${content}`)
  }
  let left = EVENTS + stored * EVENTS_OF_RECORD
  const isFuture = (stamp: unknown): boolean => {
    const at = typeof stamp === 'string' ? parseDate(stamp) : null
    return at !== null && at > now + limits.futureDays * DAY_MS
  }
  const compare = (old: ParsedVersion, next: ParsedVersion, stamps: unknown[]): RecordDoubt[] => {
    if (typeof old === 'string') return [{ kind: 'notCompared', because: old }]
    if (typeof next === 'string') return incomparable(next)
    const is = fieldsOf(next.json)['modified']
    if (isFuture(is) && !isFuture(fieldsOf(old.json)['modified'])) stamps.push(is)
    if (isHarmless(old, next)) return []
    left -= countEvents(old.json) + countEvents(next.json)
    return left < 0 ? incomparable(TOO_MUCH) : doubtsAbout(old, next)
  }
  const decide = (
    { id, content, stamps }: Seen,
    versions: BeforeAndAfter<ParsedVersion> | null,
  ): void => {
    const doubts = versions === null ? [] : compare(...versions, stamps)
    const future = stamps.find(isFuture)
    if (typeof future === 'string')
      doubts.push({ kind: 'futureModified', because: `modified is ${plainText(future, 40)}` })
    for (const doubt of doubts) note(id, content, doubt)
  }
  const seen = createPairBatch(decide)
  return {
    see(after, before, stampBefore) {
      const { id, modified } = after
      const stamps: unknown[] = isFuture(modified) && !isFuture(stampBefore()) ? [modified] : []
      const content = after.sha256.toString('base64')
      const isChanged = before !== null && !before.sha256.equals(after.sha256)
      seen.add({ id, content, stamps }, isChanged ? [before, after] : null)
    },
    leave: (id, modified, because) => {
      note(id, modified, { kind: 'ecosystemChanged', because })
    },
    verdict() {
      seen.decide()
      return judge(limits, stored, found)
    },
  }
}

function judge(limits: Limits, stored: number, found: ReadonlyMap<Doubt, Found>): RecordVerdict {
  const over = [...found].filter(([kind, { count }]) => isOver(limits, stored, kind, count))
  const refused = over.filter(([kind]) => limits[kind] === 'enforce')
  const warned = over.filter(([kind]) => limits[kind] === 'warn')
  const words = (ones: typeof over): string | null =>
    ones.length === 0
      ? null
      : ones.map(([kind, { count }]) => reasonOf(limits, stored, kind, count)).join('; ')
  const contents = refused.flatMap(([kind, one]) => one.contents.map((text) => `${text} ${kind}`))
  return {
    refusal: words(refused),
    warning: words(warned),
    identity: sha256Of(contents.sort().join('\n')),
    doubts: over.reduce((sum, [, { count }]) => sum + count, 0),
    lines: [...refused, ...warned].flatMap(([, { lines }]) => lines),
    doubted: Object.fromEntries(over.map(([kind, { ids }]) => [kind, ids])),
    notCompared: found.get('notCompared')?.count ?? 0,
  }
}

function isOver(limits: Limits, stored: number, kind: Doubt, count: number): boolean {
  return count > limits[`${kind}Records`] && count > stored * limits[`${kind}Fraction`]
}

function reasonOf(limits: Limits, stored: number, kind: Doubt, count: number): string {
  const [records, fraction] = [limits[`${kind}Records`], limits[`${kind}Fraction`]]
  const least = records > 0 || fraction > 0 ? `, more than ${records} and more than ${percent(fraction)}` : '' // prettier-ignore
  return `${count} of ${counted(stored, 'record')} ${doubtText(kind, count)} (guard.${kind}${least})`
}

/** The doubts about a record that could be compared before. */
function incomparable(because: string): RecordDoubt[] {
  return [
    { kind: 'notCompared', because },
    { kind: 'incomparable', because },
  ]
}

const TOO_MUCH = 'not compared: the changed records of this run have too many events of ranges'

function countEvents(json: unknown): number {
  let events = 0
  for (const entry of eachObject(fieldsOf(json)['affected']))
    for (const { events: list } of eachObject(entry['ranges']))
      if (Array.isArray(list)) events += list.length
  return events
}

function wordsOf(because: RecordDoubt['because']): string {
  if (typeof because === 'string') return because
  const more = because.length - SENTENCES
  const words = recordSentences(because.slice(0, SENTENCES))
  return [...words, ...(more > 0 ? [`and ${counted(more, 'more difference')}`] : [])].join('; ')
}
