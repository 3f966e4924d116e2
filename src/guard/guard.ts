import { counted, plainText } from '../base/text.ts'
import { DAY_MS, parseDate } from '../base/time.ts'
import { recordSentences } from '../documents/differences/words.ts'
import { packageKey } from '../base/identity/names.ts'
import { eachObject, fieldsOf, jsonTextOf } from '../base/json/objects.ts'
import { FRAME, inflateMembers } from '../base/gzip/member.ts'
import { refuseComparison } from '../documents/differences/bounds.ts'
import { contentOf, sizeOf } from '../store/database/gzip.ts'
import { isHarmless } from './harmless.ts'
import { createNewIds } from './ids.ts'
import { type ParsedRecord, type RecordDoubt, doubtsAbout } from './kinds.ts'
import { disguiseIn } from './names.ts'
import { type GuardVerdict, type Standard, createDoubtCount } from './verdict.ts'

/** Events of ranges that one run compares, beside some for each stored record: its comparisons have the write lock. */
const EVENTS = 200_000
const EVENTS_OF_RECORD = 200
/** Sentences about one record that are named. */
const SENTENCES = 3
/** How far ahead of the clock a date of modification may be: zones and wrong clocks. */
const FUTURE_MS = 2 * DAY_MS

/** A record as it is stored, and as it was when the window began. */
interface StoredVersions {
  readonly before: Version | null
  /** Null: it is as it was then, or that version is not kept. */
  readonly atStart: Version | null
}

/** A record that was seen: its id, its digest, the stamps that may be in the future, and whether it was compared with the stored one. */
interface Seen {
  readonly id: string
  readonly content: string
  readonly stamps: unknown[]
  readonly isSinceStart: boolean
}

/** Creates a guard for one run. `stored`: number of records before it; `now`: Unix milliseconds. */
export function createRecordGuard(standard: Standard, stored: number, now: number) {
  const count = createDoubtCount(standard)
  const restored: string[] = []
  const newIds = createNewIds()
  const isFuture = (stamp: unknown): boolean => {
    const at = typeof stamp === 'string' ? parseDate(stamp) : null
    return at !== null && at > now + FUTURE_MS
  }
  const compare = createComparison(stored, isFuture)
  const decide = (
    { id, content, stamps, isSinceStart }: Seen,
    versions: BeforeAndAfter<ParsedVersion> | null,
  ): void => {
    const doubts = versions === null ? [] : compare(...versions, stamps)
    if (isSinceStart && doubts.length === 0) restored.push(id)
    const isNew = ({ kind }: RecordDoubt): boolean => !isSinceStart || standard.settled?.has(kind) !== true
    const future = stamps.find(isFuture)
    if (typeof future === 'string')
      doubts.push({ kind: 'futureModified', because: `modified is ${plainText(future, 40)}` })
    const packages = doubts.length === 0 ? [] : packagesIn(versions)
    for (const { kind, because, come = [] } of doubts.filter(isNew)) {
      count.note({ kind, name: id, content, because: wordsOf(because), packages })
      newIds.add(id, { come, content, packages })
    }
  }
  const seen = createPairBatch(decide)
  return {
    /**
     * Compares a record that is about to be stored, with its stamp in the index, with the stored one. `stampBefore` is asked only
     * for a stamp that is far in the future.
     */
    see(
      after: Version & { readonly id: string; readonly modified: string },
      { before, atStart }: StoredVersions,
      stampBefore: () => string | null,
    ): void {
      const { id, modified } = after
      const stamps: unknown[] = isFuture(modified) && !isFuture(stampBefore()) ? [modified] : []
      const content = after.sha256.toString('base64')
      const isChanged = before !== null && !before.sha256.equals(after.sha256)
      seen.add({ id, content, stamps, isSinceStart: false }, isChanged ? [before, after] : null)
      if (isChanged && atStart !== null) seen.add({ id, content, stamps: [], isSinceStart: true }, [atStart, after])
      const disguise = before === null ? disguiseIn(id) : null
      if (disguise !== null) count.note({ kind: 'nameDisguised', name: id, content, because: disguise, packages: [] })
    },
    /** Notes a stored record that is to be removed because of its new content, whose stamp is `modified`. */
    leave: (name: string, content: string, because: string): void => {
      count.note({ kind: 'affectedLost', name, content, because, packages: [] })
    },
    /** Notes a stored record that is not listed any more. */
    remove: (name: string): void => {
      count.note({ kind: 'removed', name, content: '', because: 'not listed any more', packages: [] })
    },
    verdict(): GuardVerdict {
      seen.decide()
      noteRuledOut(standard, newIds, count)
      return count.verdict()
    },
    /** Ids of the records that are as they were when the window began. */
    restored: (): readonly string[] => restored,
  }
}

/** Notes the records that VEX may newly rule out by ids that came. Few of them cannot exceed the limits, and no VEX is read. */
function noteRuledOut(
  { ruledOut, earlier, settings }: Standard,
  newIds: ReturnType<typeof createNewIds>,
  count: ReturnType<typeof createDoubtCount>,
): void {
  if (ruledOut === undefined || newIds.count() === 0) return
  const before = earlier('idsChanged').length + earlier('idsRuledOut').length
  if (newIds.count() + before <= settings.limitCount / 2) return
  for (const [name, id, { content, packages }] of newIds.listRuledOut(ruledOut)) {
    const because = `${plainText(id, 40)} came, which mirrored VEX rules out`
    count.note({ kind: 'idsRuledOut', name, content, because, packages })
  }
}

/** Creates the comparison of versions of records; stamps that moved into the future are added to `stamps`. */
function createComparison(stored: number, isFuture: (stamp: unknown) => boolean) {
  let left = EVENTS + stored * EVENTS_OF_RECORD
  return (old: ParsedVersion, next: ParsedVersion, stamps: unknown[]): RecordDoubt[] => {
    if (typeof old === 'string') return [{ kind: 'notCompared', because: old }]
    if (typeof next === 'string') return incomparable(next)
    const is = fieldsOf(next.json)['modified']
    if (isFuture(is) && !isFuture(fieldsOf(old.json)['modified'])) stamps.push(is)
    if (isHarmless(old, next)) return []
    left -= countEvents(old.json) + countEvents(next.json)
    return left < 0 ? incomparable(TOO_MUCH) : doubtsAbout(old, next)
  }
}

/** Names of the packages of the version before the change, as their ecosystems compare them. */
function packagesIn(versions: BeforeAndAfter<ParsedVersion> | null): string[] {
  const [before] = versions ?? []
  if (before === undefined || typeof before === 'string') return []
  const names = new Set<string>()
  for (const entry of eachObject(fieldsOf(before.json)['affected'])) {
    const { ecosystem, name } = fieldsOf(entry['package'])
    if (typeof name !== 'string') continue
    const key = typeof ecosystem === 'string' ? packageKey(ecosystem, name) : name
    names.add(plainText(key, 100))
  }
  return [...names]
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
    for (const { events: list } of eachObject(entry['ranges'])) if (Array.isArray(list)) events += list.length
  return events
}

function wordsOf(because: RecordDoubt['because']): string {
  if (typeof because === 'string') return because
  const more = because.length - SENTENCES
  const words = recordSentences(because.slice(0, SENTENCES))
  return [...words, ...(more > 0 ? [`and ${counted(more, 'more difference')}`] : [])].join('; ')
}

/** Largest record that is compared, bytes. */
const MAX_COMPARED = 2 ** 20

/** A version of a record: a gzip member of its bytes, their size and digest. */
interface Version {
  readonly body: Buffer
  readonly size: number
  readonly sha256: Buffer
}

/** A version as parsed, or why it is not compared. */
type ParsedVersion = ParsedRecord | string

/** The version before a change, and the one after it. */
type BeforeAndAfter<Value> = readonly [before: Value, after: Value]

/** Changed records whose versions are inflated in one call, and bytes of their contents, unless one alone has more. */
const BATCH = { records: 64, bytes: 2 ** 19 }

/** Calls `decide` with what was added and its versions, if it has any, many at a time: in the order in which they were added. */
function createPairBatch<Item>(decide: (item: Item, versions: BeforeAndAfter<ParsedVersion> | null) => void) {
  let waiting: { item: Item; versions: BeforeAndAfter<Version> | null }[] = []
  let bytes = 0
  const decideAll = (): void => {
    const parsed = parseVersions(waiting.flatMap(({ versions }) => versions ?? []))
    const next = (): ParsedVersion => parsed.next().value ?? DAMAGED
    for (const { item, versions } of waiting) decide(item, versions && [next(), next()])
    waiting = []
    bytes = 0
  }
  return {
    /** The versions' buffers may be used again after the call. */
    add(item: Item, versions: BeforeAndAfter<Version> | null): void {
      waiting.push({ item, versions: versions && [copyOf(versions[0]), copyOf(versions[1])] })
      bytes += versions === null ? 0 : versions[0].size + versions[1].size
      if (waiting.length >= BATCH.records || bytes >= BATCH.bytes) decideAll()
    },
    decide: decideAll,
  }
}

function copyOf({ body, size, sha256 }: Version): Version {
  return { body: Buffer.from(body), size, sha256 }
}

/** Yields what versions say. They are inflated together, and parsed one by one: a parsed version is not kept for long. */
function* parseVersions(versions: readonly Version[]): Generator<ParsedVersion, undefined> {
  const contents = contentsOf(versions.filter(isSmall))
  let at = 0
  for (const version of versions) yield isSmall(version) ? parse(contents[at++] ?? null) : TOO_LARGE
}

function isSmall({ size }: Version): boolean {
  return size <= MAX_COMPARED
}

/** Returns the contents of versions; null for one whose bytes are damaged. */
function contentsOf(versions: readonly Version[]): (Buffer | null)[] {
  const joined = versions.every(isOfItsSize) ? inflateJoined(versions) : null
  if (joined === null) return versions.map(contentAlone)
  let at = 0
  return versions.map((one) => joined.subarray(at, (at += one.size)))
}

function isOfItsSize({ body, size }: Version): boolean {
  return body.length > FRAME && sizeOf(body) === size
}

function inflateJoined(versions: readonly Version[]): Buffer | null {
  let end = 0
  const ends = versions.map(({ body }) => (end += body.length))
  return inflateMembers(Buffer.concat(versions.map(({ body }) => body)), ends)
}

function contentAlone({ body, size }: Version): Buffer | null {
  try {
    return contentOf(body, size)
  } catch {
    return null
  }
}

function parse(content: Buffer | null): ParsedVersion {
  if (content === null) return DAMAGED
  try {
    const text = jsonTextOf(content)
    const json = JSON.parse(text) as unknown
    const refusal = refuseComparison(text, json)
    return refusal === null ? { json, length: text.length } : `not compared: ${refusal}`
  } catch {
    return DAMAGED
  }
}

const TOO_LARGE = `not compared: larger than ${MAX_COMPARED} bytes`
const DAMAGED = 'not compared: its stored bytes cannot be read (run "patchmirror doctor --data")'
