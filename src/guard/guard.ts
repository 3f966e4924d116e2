import type { Config } from '../config/schema.ts'
import { sha256Of } from '../core/digest.ts'
import { counted, percent, plainText } from '../core/text.ts'
import { DAY_MS, parseDate } from '../core/time.ts'
import { refuseComparison } from '../differences/bounds.ts'
import { recordSentences } from '../differences/words.ts'
import { eachObject, fieldsOf, jsonTextOf } from '../json/objects.ts'
import { contentOf } from '../store/database/gzip.ts'
import {
  DOUBTS,
  type Doubt,
  type ParsedRecord,
  type RecordDoubt,
  doubtText,
  doubtsAbout,
} from './kinds.ts'

type Limits = Config['guard']

/** Largest record that is compared, bytes. */
const MAX_COMPARED = 2 ** 20
/** Events of ranges that one run compares, beside some for each stored record: its comparisons have the write lock. */
const EVENTS = 200_000
const EVENTS_OF_RECORD = 200
/** Records of each kind that are named. */
const LISTED = 20
/** Sentences about one record that are named. */
const SENTENCES = 3

/** A version of a record: a gzip member of its bytes, their size and digest. */
interface Version {
  readonly body: Buffer
  readonly size: number
  readonly sha256: Buffer
}

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
  readonly lines: string[]
  readonly contents: string[]
}

/** Returns whether any kind of doubt is looked for. */
export function isGuarding(limits: Limits): boolean {
  return KINDS.some((kind) => limits[kind] !== 'off')
}

const KINDS = Object.keys(DOUBTS) as Doubt[]

/** Creates a guard for one run. `stored`: number of records before it; `now`: Unix milliseconds. */
export function createRecordGuard(limits: Limits, stored: number, now: number): RecordGuard {
  const found = new Map<Doubt, Found>(
    KINDS.map((kind) => [kind, { count: 0, lines: [], contents: [] }]),
  )
  const note = (id: string, content: string, { kind, because }: RecordDoubt): void => {
    const into = found.get(kind)
    if (into === undefined || limits[kind] === 'off') return
    into.count++
    if (into.lines.length < LISTED) into.lines.push(`${id}: ${wordsOf(because)}`)
    if (limits[kind] === 'enforce') into.contents.push(`${id} ${content}`)
  }
  let left = EVENTS + stored * EVENTS_OF_RECORD
  const isFuture = (stamp: unknown): boolean => {
    const at = typeof stamp === 'string' ? parseDate(stamp) : null
    return at !== null && at > now + limits.futureDays * DAY_MS
  }
  return {
    see(after, before, stampBefore) {
      const { id, modified } = after
      const doubts: RecordDoubt[] = []
      const stamps: unknown[] = isFuture(modified) && !isFuture(stampBefore()) ? [modified] : []
      if (before !== null && !before.sha256.equals(after.sha256)) {
        const [old, next] = [parse(before), parse(after)]
        if (typeof old === 'string') doubts.push({ kind: 'notCompared', because: old })
        else if (typeof next === 'string')
          doubts.push(
            { kind: 'notCompared', because: next },
            { kind: 'incomparable', because: next },
          )
        else if ((left -= countEvents(old.json) + countEvents(next.json)) < 0)
          doubts.push(
            { kind: 'notCompared', because: TOO_MUCH },
            { kind: 'incomparable', because: TOO_MUCH },
          )
        else {
          doubts.push(...doubtsAbout(old, next))
          const [was, is] = [old, next].map(({ json }) => fieldsOf(json)['modified'])
          if (!isFuture(was)) stamps.push(is)
        }
      }
      const future = stamps.find(isFuture)
      if (typeof future === 'string')
        doubts.push({ kind: 'futureModified', because: `modified is ${plainText(future, 40)}` })
      for (const doubt of doubts) note(id, after.sha256.toString('base64'), doubt)
    },
    leave: (id, modified, because) => {
      note(id, modified, { kind: 'ecosystemChanged', because })
    },
    verdict: () => judge(limits, stored, found),
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

/** Returns a version as parsed, or why it is not compared. */
function parse({ body, size }: Version): ParsedRecord | string {
  if (size > MAX_COMPARED) return `not compared: larger than ${MAX_COMPARED} bytes`
  try {
    const text = jsonTextOf(contentOf(body, size))
    const json = JSON.parse(text) as unknown
    const refusal = refuseComparison(text, json)
    return refusal === null ? { json, length: text.length } : `not compared: ${refusal}`
  } catch {
    return DAMAGED
  }
}

const TOO_MUCH = 'not compared: the changed records of this run have too many events of ranges'

function countEvents(json: unknown): number {
  let events = 0
  for (const entry of eachObject(fieldsOf(json)['affected']))
    for (const { events: list } of eachObject(entry['ranges']))
      if (Array.isArray(list)) events += list.length
  return events
}

const DAMAGED = 'not compared: its stored bytes cannot be read (run "patchmirror verify")'

function wordsOf(because: RecordDoubt['because']): string {
  if (typeof because === 'string') return because
  const more = because.length - SENTENCES
  const words = recordSentences(because.slice(0, SENTENCES))
  return [...words, ...(more > 0 ? [`and ${counted(more, 'more difference')}`] : [])].join('; ')
}
