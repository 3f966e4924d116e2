import { sha256Of } from '../../core/digest.ts'
import { toIso } from '../../core/time.ts'
import { refuseComparison } from '../../differences/bounds.ts'
import type { RecordDifference } from '../../differences/difference.ts'
import { type RecordText, differencesOf } from '../../differences/differences.ts'
import { factsOf } from '../../differences/facts.ts'
import { recordSentences } from '../../differences/words.ts'
import { jsonTextOf } from '../../json/objects.ts'
import type { ChangedName } from '../../store/changes/log.ts'
import { contentOf } from '../../store/database/gzip.ts'
import type { Reads } from '../../store/reads.ts'
import type { PackageFilter } from './filter.ts'

/** Largest record that is compared, and content that is compared and answered for one page, bytes. */
const MAX_COMPARED = 2 ** 20
const MAX_PAGE_BYTES = 2 ** 20
/** What a difference adds to the work and the answer, about, bytes. */
const DIFFERENCE_BYTES = 500

/** What changed in a record: as data, and in words. */
export interface RecordDetail {
  /** Null: not known, as `words` say. */
  readonly differences: readonly RecordDifference[] | null
  readonly words: readonly string[]
}

/** Describes the changed records of one page. */
export interface Detailer {
  /** Null: the change does not concern the packages that are asked for. */
  describe(changed: ChangedName): RecordDetail | null
  /** Whether enough was read for one page. */
  isFull(): boolean
  /** Number of records of which it is not known whether they concern these packages. */
  notJudged(): number
}

/** Creates what describes changes up to a row of the log, `until`; null: up to the served state. */
export function createDetailer(
  reads: Pick<Reads, 'osv' | 'changes'>,
  until: number | null,
  filter: PackageFilter | null,
): Detailer {
  let spent = 0
  let unjudged = 0
  const versions = createVersionReader(reads, until, (bytes) => (spent += bytes))
  return {
    isFull: () => spent > MAX_PAGE_BYTES,
    notJudged: () => unjudged,
    describe(changed) {
      const { before, after, problem } = versions(changed)
      const concerned = [before, after].some((one) => one?.json !== undefined && filter !== null && concerns(one.json, filter)) // prettier-ignore
      if (problem !== null) {
        if (filter === null || concerned) return { differences: null, words: [problem] }
        unjudged++
        return null
      }
      if (filter !== null && !concerned) return null
      const detail = compared(before, after, filter)
      spent += (detail?.differences?.length ?? 0) * DIFFERENCE_BYTES
      return detail
    },
  }
}

function compared(
  before: Version | null,
  after: Version | null,
  filter: PackageFilter | null,
): RecordDetail | null {
  const all = differencesOf(before, after)
  if (all.length === 0) {
    const [from, to] = [before?.stamp ?? null, after?.stamp ?? null]
    const stamp: RecordDifference = { kind: 'modified_only', from, to }
    if (from !== to) return { differences: [stamp], words: recordSentences([stamp]) }
    return { differences: [], words: ['written in another way, with the same content'] }
  }
  const mine = all.filter((one) => filter === null || !('package' in one) || one.package === null || filter.asks(one.package)) // prettier-ignore
  return mine.length === 0 ? null : { differences: mine, words: recordSentences(mine) }
}

/** A version of a record as parsed, and its stamp in the index. */
interface Version extends RecordText {
  readonly stamp: string
}

interface Versions {
  readonly before: Version | null
  readonly after: Version | null
  /** Why the two cannot be compared; null: they can. */
  readonly problem: string | null
}

function createVersionReader(
  { osv, changes }: Pick<Reads, 'osv' | 'changes'>,
  until: number | null,
  spend: (bytes: number) => void,
): (changed: ChangedName) => Versions {
  const parse = (bytes: Buffer, size: number, sha256: Buffer, stamp: string): Version | string => {
    if (size > MAX_COMPARED) return `changed (larger than ${MAX_COMPARED} bytes, not compared)`
    spend(size)
    try {
      const content = contentOf(bytes, size)
      if (!sha256Of(content).equals(sha256)) return DAMAGED
      const text = jsonTextOf(content)
      const json = JSON.parse(text) as unknown
      const refusal = refuseComparison(text, json)
      return refusal === null ? { text, json, stamp } : `changed (${refusal}, not compared)`
    } catch {
      return DAMAGED
    }
  }
  const current = (id: string): Version | string => {
    const found = osv.readRecord(id)
    if (found === null) return DAMAGED
    return parse(found.body, found.size, found.sha256, found.modified)
  }
  /** The version that a row of the log replaced. */
  const earlier = (id: string, log: number): Version | string => {
    const found = osv.readEarlier(id, log)
    const bytes = found?.body ?? (found === null ? undefined : osv.readRecord(id)?.body)
    if (found !== null && bytes !== undefined)
      return parse(bytes, found.size, found.sha256, found.modified)
    const replacedAt = changes.readLogged(log)?.publishedAt
    return `changed (earlier version not stored since ${replacedAt === undefined ? 'then' : toIso(replacedAt)})`
  }
  return ({ name, change, log }) => {
    const next = until === null ? null : changes.readNextChange('osv', name, until)
    const before = change === 'added' ? null : earlier(name, log)
    const after = change === 'removed' ? null : next === null ? current(name) : earlier(name, next)
    const problem = [before, after].find((one) => typeof one === 'string') ?? null
    const readable = (one: Version | string | null) => (typeof one === 'string' ? null : one)
    // That a record was removed is known without the version before.
    const isGone = change === 'removed' && typeof problem === 'string'
    return {
      before: readable(before),
      after: readable(after),
      problem:
        typeof problem === 'string' ? (isGone ? `record removed; ${problem}` : problem) : null,
    }
  }
}

const DAMAGED = 'changed (its stored bytes cannot be read: run "patchmirror verify")'

function concerns(json: unknown, filter: PackageFilter): boolean {
  return [...factsOf(json).packages.values()].some((one) => filter.asks(one.package))
}
