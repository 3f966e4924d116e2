import { LRUCache } from 'lru-cache'
import { sha256Of } from '../../base/digest.ts'
import { toIso } from '../../base/time.ts'
import { refuseComparison } from '../../documents/differences/bounds.ts'
import type { PackageName } from '../../documents/differences/facts.ts'
import type { RecordDifference } from '../../documents/differences/difference.ts'
import { type RecordText, differencesOf } from '../../documents/differences/differences.ts'
import { recordSentences } from '../../documents/differences/words.ts'
import { recordedPackage } from '../../base/identity/recorded.ts'
import { eachObject, fieldsOf, jsonTextOf } from '../../base/json/objects.ts'
import type { ChangedName } from '../../store/changes/log.ts'
import { contentOf } from '../../store/database/gzip.ts'
import type { Reads } from '../../store/reads.ts'
import { type LeftReads, createLeft } from '../../store/changes/left.ts'
import type { PackageFilter } from './filter.ts'

/** Largest record that is compared, and content that is compared and answered for one page, bytes. */
const MAX_COMPARED = 2 ** 20
const MAX_PAGE_BYTES = 2 ** 20
/** Content of records that a filter rules out and one page reads, bytes: about 0.2 seconds. */
const MAX_EXAMINED = 2 ** 23
/** What a record adds to the work that is ruled out without being read, about, bytes. */
const RULED_OUT_BYTES = 500
/** What a difference adds to the work and the answer, about, bytes. */
const DIFFERENCE_BYTES = 500

/** What changed in a record: as data, and in words. */
interface RecordDetail {
  /** Null: not known, as `words` say. */
  readonly differences: readonly RecordDifference[] | null
  readonly words: readonly string[]
}

/** Describes the changed records of one page. */
export type Detailer = ReturnType<typeof createDetailer>

/** A comparison of two versions as JSON, since its texts are parts of those of the records; and the bytes that were read for it. */
interface Comparison {
  readonly json: string
  readonly bytes: number
}

/**
 * What was compared last, by the digests of the versions: followers of a feed and readers of a page ask for the same changes again
 * and again. Holds about two megabytes at most.
 */
const recent = new LRUCache<string, Comparison>({
  max: 4_000,
  maxSize: 2_000_000,
  maxEntrySize: 50_000,
  sizeCalculation: ({ json }, key) => json.length + key.length,
})

/**
 * Creates what describes changes up to a row of the log, `until`; null: up to the served state. What the filter rules out does
 * not count as read for a page, up to `mostExamined` bytes.
 */
export function createDetailer(
  reads: LeftReads,
  until: number | null,
  filter: PackageFilter | null,
  mostExamined = MAX_EXAMINED,
) {
  let spent = 0
  let examined = 0
  let unjudged = 0
  const find = createFinder(reads, until)
  const removalOf = createRemovals(reads)
  const describePair = (pair: Pair): RecordDetail | null => {
    if (filter !== null && isRuledOut(pair.before, filter) && isRuledOut(pair.after, filter)) {
      spent += RULED_OUT_BYTES
      return null
    }
    const { before, after, problem } = parsePair(pair, (bytes) => (spent += bytes))
    const isConcerned =
      filter === null || [before, after].map((one) => one !== null && concerns(one, filter)).includes(true)
    if (!isConcerned) {
      if (problem !== null) unjudged++
      return null
    }
    const refused = problem ?? refusalOf(pair, [before, after])
    if (refused !== null) return { differences: null, words: [refused] }
    const detail = compared(before, after, filter)
    spent += (detail?.differences?.length ?? 0) * DIFFERENCE_BYTES
    return detail
  }
  return {
    /** Whether enough was read for one page. */
    isFull: (): boolean => spent > MAX_PAGE_BYTES || examined > mostExamined,
    /** Number of records of which it is not known whether they concern these packages. */
    notJudged: (): number => unjudged,
    /** Content of records that the filter ruled out, bytes. */
    examined: (): number => examined,
    /** Null: the change does not concern the packages that are asked for. */
    describe(changed: ChangedName): RecordDetail | null {
      const pair = find(changed)
      const removal = pair.isGone ? removalOf(changed) : null
      const key = filter === null ? keyOf(changed, pair, removal) : null
      const known = key === null ? undefined : recent.get(key)
      if (known !== undefined) {
        spent += known.bytes
        return JSON.parse(known.json) as RecordDetail // as it was put there
      }
      const spentBefore = spent
      const found = describePair(pair)
      if (found === null) {
        examined += spent - spentBefore
        spent = spentBefore
      }
      const detail = found !== null && removal !== null ? { ...found, words: [removal] } : found
      if (key !== null && detail !== null && detail.differences !== null)
        recent.set(key, { json: JSON.stringify(detail), bytes: spent - spentBefore })
      return detail
    },
  }
}

/** Returns what determines the comparison of two versions; null where one of them cannot be read. */
function keyOf({ name }: ChangedName, { before, after }: Pair, removal: string | null): string | null {
  const versions = [before, after].map((one) =>
    typeof one === 'string' ? null : one && [one.sha256.toString('base64'), one.modified],
  )
  const isReadable = typeof before !== 'string' && typeof after !== 'string'
  return isReadable ? JSON.stringify([name, removal, versions]) : null
}

function compared(before: Version | null, after: Version | null, filter: PackageFilter | null): RecordDetail | null {
  const all = differencesOf(before, after)
  if (all.length === 0) {
    const from = before?.stamp ?? null
    const to = after?.stamp ?? null
    const stamp: RecordDifference = { kind: 'modified_only', from, to }
    if (from !== to) return { differences: [stamp], words: recordSentences([stamp]) }
    return { differences: [], words: ['written in another way, with the same content'] }
  }
  const mine = all.filter(
    (one) => filter === null || !('package' in one) || one.package === null || filter.asks(one.package),
  )
  return mine.length === 0 ? null : { differences: mine, words: recordSentences(mine) }
}

/** A version of a record as parsed, and its stamp in the index. */
interface Version extends RecordText {
  readonly stamp: string
  readonly sha256: Buffer
}

/** A version as it is stored. */
interface Stored {
  readonly body: Buffer
  readonly size: number
  readonly sha256: Buffer
  readonly modified: string
  /** Whether it is an earlier version with bytes of its own; absent: it is the current one. */
  readonly hasOwnBytes?: boolean
}

/** The versions before and after a change: null where there is none, or why it cannot be read. */
interface Pair {
  readonly before: Stored | string | null
  readonly after: Stored | string | null
  /** Whether the change removed the record: this is known without the version before. */
  readonly isGone: boolean
}

/** Creates the function that finds the versions of a change. */
function createFinder(
  { osv, changes }: Pick<Reads, 'osv' | 'changes'>,
  until: number | null,
): (changed: ChangedName) => Pair {
  /** The version that a row of the log replaced. */
  const earlier = (id: string, log: number): Stored | string => {
    const found = osv.readEarlier(id, log)
    const body = found?.body ?? (found === null ? undefined : osv.readRecord(id)?.body)
    if (found !== null && body !== undefined) return { ...found, body, hasOwnBytes: found.body !== null }
    const replacedAt = changes.readLogged(log)?.publishedAt
    return `changed (earlier version not stored since ${replacedAt === undefined ? 'then' : toIso(replacedAt)})`
  }
  /** The version at the end of the changes. */
  const latest = (id: string): Stored | string => {
    const next = until === null ? null : changes.readNextChange('osv', id, until)
    return next === null ? (osv.readRecord(id) ?? DAMAGED) : earlier(id, next)
  }
  return ({ name, change, log }) => {
    const isGone = change === 'removed'
    return {
      before: change === 'added' ? null : earlier(name, log),
      after: isGone ? null : latest(name),
      isGone,
    }
  }
}

interface Versions {
  readonly before: Version | null
  readonly after: Version | null
  /** Why the two cannot be compared; null: they can. */
  readonly problem: string | null
}

/** Parses the versions of a change. `spend`: is called with the bytes of each that is read. */
function parsePair(pair: Pair, spend: (bytes: number) => void): Versions {
  const parse = (one: Pair['before']): Version | string | null =>
    one === null || typeof one === 'string' ? one : parseVersion(one, spend)
  const before = parse(pair.before)
  const after = parse(pair.after)
  const problem = [before, after].find((one) => typeof one === 'string')
  const readable = (one: Version | string | null) => (typeof one === 'string' ? null : one)
  return {
    before: readable(before),
    after: readable(after),
    problem: typeof problem === 'string' ? `${gone(pair)}${problem}` : null,
  }
}

function gone({ isGone }: Pair): string {
  return isGone ? 'record removed; ' : ''
}

/** Says why versions are not compared that can be read; null: they can be compared. */
function refusalOf(pair: Pair, versions: readonly (Version | null)[]): string | null {
  for (const version of versions) {
    const refusal = version && refuseComparison(version.text, version.json)
    if (refusal !== null) return `${gone(pair)}changed (${refusal}, not compared)`
  }
  return null
}

function parseVersion(
  { body, size, sha256, modified, hasOwnBytes = false }: Stored,
  spend: (bytes: number) => void,
): Version | string {
  if (size > MAX_COMPARED) return `changed (larger than ${MAX_COMPARED} bytes, not compared)`
  spend(size)
  const damaged = hasOwnBytes ? DAMAGED_EARLIER : DAMAGED
  try {
    const content = contentOf(body, size)
    if (!sha256Of(content).equals(sha256)) return damaged
    const text = jsonTextOf(content)
    return { text, json: JSON.parse(text) as unknown, stamp: modified, sha256 }
  } catch {
    return damaged
  }
}

/** Creates the function that says why a record was removed that upstream may list; null: nothing says so. */
function createRemovals(reads: LeftReads) {
  const left = createLeft(reads)
  return ({ name, snapshot }: Pick<ChangedName, 'name' | 'snapshot'>): string | null => {
    if (reads.osv.isOutside(name)) return OUTSIDE
    const cause = left(name, snapshot)
    return cause === null ? null : LEFT[cause]
  }
}

const LEFT = {
  scope: 'record removed from this mirror: other records are mirrored (osv.scope)',
  rollback: 'record removed from this mirror: it went back to older data',
  unknown: 'record removed from this mirror: whether upstream lists it is not known',
} as const
const OUTSIDE = 'record removed from this mirror: upstream lists it, and it is out of the scope (osv.scope)'
/** Upstream does not have these any more. */
const DAMAGED_EARLIER =
  'changed (the stored bytes of its earlier version are damaged: "patchmirror doctor --data --repair" removes it)'
const DAMAGED = 'changed (its stored bytes cannot be read: run "patchmirror doctor --data")'

/**
 * The packages of versions that were read last, by the digest of the version: most of what a filter is asked about is ruled out, for
 * one follower after another. Holds about four megabytes at most.
 */
const namedPackages = new LRUCache<string, readonly PackageName[]>({
  max: 30_000,
  maxSize: 4_000_000,
  maxEntrySize: 20_000,
  sizeCalculation: (packages, key) =>
    packages.reduce((sum, { ecosystem, name }) => sum + ecosystem.length + name.length + 40, key.length),
})

/** Whether it is known, without reading it, that a version names none of these packages. */
function isRuledOut(version: Pair['before'], filter: PackageFilter): boolean {
  if (version === null) return true
  if (typeof version === 'string') return false
  return namedPackages.get(version.sha256.toString('base64'))?.some(filter.asks) === false
}

/** Whether a version names one of these packages; the cheapest of what is done with it, since most are ruled out by it. */
function concerns({ json, sha256 }: Version, filter: PackageFilter): boolean {
  const packages = packagesIn(json)
  namedPackages.set(sha256.toString('base64'), packages)
  return packages.some(filter.asks)
}

/** Returns the packages that a record names, those of several releases once for each. */
function packagesIn(json: unknown): PackageName[] {
  const packages = new Map<string, PackageName>()
  for (const affected of eachObject(fieldsOf(json)['affected'])) {
    const named = recordedPackage(affected)
    if (named !== null) packages.set(JSON.stringify([named.ecosystem, named.name]), named)
  }
  return [...packages.values()]
}
