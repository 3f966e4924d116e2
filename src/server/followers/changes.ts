import { readToken, writeToken, isCount } from '../../base/json/objects.ts'
import { sha256Of } from '../../base/digest.ts'
import { MirrorError } from '../../base/errors.ts'
import { counted } from '../../base/text.ts'
import { type SourceName, isPrivateSource } from '../../base/domain/sources.ts'
import type { KindCounts, LogSpan } from '../../store/changes/log.ts'
import { toChangedName } from '../../store/changes/message.ts'
import type { ChangesAnswer } from './changes-answer.ts'
import { type LeftReads, createLeft } from '../../store/changes/left.ts'
import type { Reads } from '../../store/reads.ts'
import { readSince as timeOfSince, toIso } from '../../base/time.ts'
import { readDetail, readNamed, readSource, refuseDetail } from './changes-query.ts'
import { type Detailer, createDetailer } from './details.ts'
import type { PackageFilter } from './filter.ts'
import { SINCE_FORMS_HERE, type SincePlace, isSnapshotName, placesSince } from './since.ts'
import { packagesOfTag } from './tag-packages.ts'
import { missingOf } from '../snapshot/missing.ts'
import type { Problem } from '../http/problems.ts'
import { onlyValue, readLimit } from '../http/request-target.ts'

/** What the page of changes is answered from. */
interface ChangesParts {
  readonly reads: Pick<Reads, 'changes' | 'osv' | 'catalog' | 'snapshots' | 'runs'>
  /** Unix milliseconds. */
  readonly now: number
  /** The last entry of the log that is served, so every reported change is readable; null: the latest. */
  readonly latest: number | null
  /** Returns why this client may not read what takes a key; null: it may. */
  readonly judge: () => Problem | null
}

/** Names on a page: the default, and the maximum. */
const PAGE = 1_000
const MAX_PAGE = 10_000
/** Characters of names on a page: with longer names it ends sooner, so that writing it never takes long. */
const MAX_CHARACTERS = 500_000
/** Names that are folded for one answer. With more of them, reading everything is the shorter way for everybody. */
export const MAX_FOLDED = 10_000

/** Records on a page that are compared: some tens of milliseconds. */
const MAX_DETAILED = 100
/** Names that a filter is asked about for one page, and of a whole list. A page may list few of them, or none. */
const MAX_EXAMINED = 4_000
const MAX_FILTERED = 200_000

/**
 * Answers `/-/changes?since=SNAPSHOT`: what differs between that snapshot and the one served now, folded and paged. A
 * snapshot that is not known, or too long ago, is a 404, never an empty list; what else is asked is judged before. Throws
 * `bad_request`; for a tag, whose SBOM is read, what `packagesOfTag` throws.
 */
export function answerChanges(
  { reads, now, latest, judge }: ChangesParts,
  query: URLSearchParams,
): Problem | ChangesAnswer {
  const given = readNamed(query)
  const wanted = readSource(query)
  const limit = readLimit(query, MAX_PAGE) ?? PAGE
  const after = onlyValue(query, 'after')
  const isPrivate = Boolean(query.get('tag')) || (wanted !== null && isPrivateSource(wanted))
  const denied = isPrivate ? judge() : null
  if (denied !== null) return denied
  const { tag, ...detail } = readDetail(query, wanted ?? 'osv')
  const listed = tag === null ? null : packagesOfTag(reads, tag)
  const [place, another] = placesSince(reads, given, wanted, now)
  if (place === undefined) return unknown(reads, given, wanted, now)
  if (another !== undefined) throw new MirrorError('bad_request', 'since=… is a snapshot of two sources: add source=…')
  const refusal = isPrivateSource(place.source) ? judge() : null
  if (refusal !== null) return refusal
  if (detail.detailed) refuseDetail(place.source)
  const filter = listed?.filter ?? detail.filter
  const from = readBeginning(reads, place, after)
  const found = from === null ? null : findChanges(reads, place, from, { ...detail, after, limit, latest, filter, now })
  if (found === null) return unknown(reads, given, wanted, now)
  const missing = missingOf(reads, place.source, found.to)
  const isNamed = query.has('purl') || query.has('ecosystem')
  const note = isNamed && after === null && isEmpty(found) ? NOT_LOOKED_UP : (listed?.doubt ?? null)
  const more = { ...(listed && { packages: listed.from }), ...(note !== null && { note }) }
  return { ...found, ...missing, ...timesOf(place), ...more }
}

/** Whether nothing that changed is known to concern what was asked, and nothing may. */
function isEmpty({ complete, changes, next, notJudged = 0 }: FoundChanges): boolean {
  return complete && changes.length + notJudged === 0 && next === null
}

/** Said of a package or an ecosystem about which nothing changed: those of records that did not change are in no index of the core. */
const NOT_LOOKED_UP =
  'no changed record names it; names are compared as a whole, and whether another record names it is not looked up here'

/** A client that asks from before the first snapshot may have anything, so that the answer to it is not complete. */
function timesOf({ at, firstStored }: SincePlace): Partial<ChangesAnswer> {
  return {
    ...(at !== null && { since: toIso(at) }),
    ...(firstStored !== null && { complete: false, knownSince: toIso(firstStored) }),
  }
}

/**
 * Returns the snapshot behind which a page is listed: with a cursor that of the page before, also where a time in `since` means
 * a later one by now. Null where the log no longer has it. Throws `bad_request` for the cursor of another list.
 */
function readBeginning(
  reads: Pick<Reads, 'changes'>,
  { source, snapshot, at }: SincePlace,
  after: string | null,
): string | null {
  const cursor = readChangeCursor(after)
  if (cursor === null) return snapshot
  const began = beginningOf(reads, { ...cursor, source })
  if (began === null || began === snapshot || at !== null) return began
  throw new MirrorError(
    'bad_request',
    'after=… continues a list since another snapshot than since=… names: repeat the since of the first page',
  )
}

/** What differs between two snapshots of a source; folded, so that each name is listed once. */
export type FoundChanges = Omit<ChangesAnswer, 'since' | 'knownSince' | 'packages' | 'note' | 'partial' | 'missing'>

/**
 * Finds what differs between a snapshot at a place in the log and the latest one, page by page: `after` is the cursor
 * of the page before. Null when the log no longer leads from there to here. Throws `bad_request` for another cursor.
 */
export function findChanges(
  reads: LeftReads,
  { source, after }: Pick<LogSpan, 'source' | 'after'>,
  since: string,
  asked: AskedChanges,
): FoundChanges | null {
  const latest = reads.changes.readLatestLogged(source)?.id ?? 0
  const until = Math.max(after, Math.min(latest, asked.latest ?? latest))
  const mark = asked.filter ? markOf(asked.filter) : ''
  const cursor = readChangeCursor(asked.after) ?? { after, until, name: '', mark }
  if (cursor.mark !== mark) throw new MirrorError('bad_request', OTHER_FILTER)
  const span = { ...cursor, source }
  if (beginningOf(reads, span) !== since) return null
  const page = { from: cursor.name, mark, limit: asked.limit, now: asked.now }
  if (asked.detailed !== true || source !== 'osv') return pageOf(reads, since, span, page)
  const detailer = createDetailer(reads, span.until === latest ? null : span.until, asked.filter ?? null)
  const limit = Math.min(asked.limit, MAX_DETAILED)
  const isFiltered = (asked.filter ?? null) !== null
  return {
    ...pageOf(reads, since, span, { ...page, limit, isFiltered }, detailer),
    ...(asked.filter === null ? {} : { notJudged: detailer.notJudged() }),
  }
}

/** Which page of the changes is asked for, and how. */
interface AskedChanges {
  readonly after: string | null
  readonly limit: number
  /** Unix milliseconds. */
  readonly now: number
  /** The last entry of the log that is reported; the latest when not given. */
  readonly latest?: number | null
  /** Whether the differences of each record are reported; and only those that concern some packages, not null. */
  readonly detailed?: boolean
  readonly filter?: PackageFilter | null
}

/** Which names a page takes, and how many. */
interface PageBounds {
  /** The last name of the page before. */
  readonly from: string
  /** Of the filter, for the next cursor. */
  readonly mark: string
  readonly limit: number
  /** Unix milliseconds. */
  readonly now: number
  /** Whether a filter decides which names are listed: it is asked before they are counted. */
  readonly isFiltered?: boolean
}

function pageOf(
  reads: LeftReads,
  since: string,
  span: LogSpan,
  { from, mark, limit, now, isFiltered = false }: PageBounds,
  detailer: Detailer | null = null,
): FoundChanges {
  const { source, after, until } = span
  const names = reads.changes.countNames(span)
  const complete = names !== null && names <= (isFiltered ? MAX_FILTERED : MAX_FOLDED)
  const most = isFiltered ? MAX_EXAMINED : limit
  const found = complete ? reads.changes.listChanged(span, from, most + 1) : []
  const doubted = found.length > 0 ? reads.changes.listDoubts(span) : null
  const left = createLeft(reads)
  const changes: FoundChanges['changes'][number][] = []
  let last: string | null = null
  let taken = 0
  let characters = 0
  for (const one of found.slice(0, most)) {
    const { name, change, snapshot, publishedAt } = one
    const isFull = characters + name.length > MAX_CHARACTERS || detailer?.isFull() === true
    if (changes.length >= limit || (taken > 0 && isFull)) break
    const detail = detailer === null ? {} : detailer.describe(one)
    last = name
    taken++
    if (detail === null) continue
    characters += name.length
    const doubts = doubted?.get(name)
    const cause = source === 'osv' && change === 'removed' ? left(name, snapshot) : null
    changes.push({
      source,
      ...toChangedName(source, name, change),
      snapshot,
      at: toIso(publishedAt),
      ...(cause !== null && { cause }),
      ...detail,
      ...(doubts && { doubts }),
    })
  }
  const to = reads.changes.readLogged(until)?.snapshot ?? since
  const next = found.length > taken && last !== null ? writeToken([after, until, last, mark]) : null
  const unnamed = complete ? {} : unnamedOf(reads, span, now)
  return { source, from: since, to, complete, ...unnamed, changes, next }
}

/** What is known where names are not listed: how many they are, and a time from which they are listed. */
function unnamedOf(
  { changes }: Pick<Reads, 'changes'>,
  span: LogSpan,
  now: number,
): Pick<FoundChanges, 'counts' | 'namedSince'> {
  const counts = changes.countKinds(span)
  const named = changes.readNamedFrom(span, MAX_FOLDED)
  // A clock that was ahead: a time in the future is refused.
  const isKnown = named !== null && named.publishedAt <= now
  return { counts, ...(isKnown && { namedSince: toIso(named.publishedAt) }) }
}

/** Says how many names changed, where none is listed. */
export function countWords({ added, changed, removed, unknownSnapshots }: KindCounts): string {
  const known = `${added} added, ${changed} changed, ${removed} removed, each once for a snapshot`
  if (unknownSnapshots === 0) return known
  return `${known}; ${counted(unknownSnapshots, 'snapshot')} changed more names than the log lists`
}

/** Returns the snapshot behind which a span begins; null where not all of it is in the log of its source. */
function beginningOf(reads: Pick<Reads, 'changes'>, { source, after, until }: LogSpan): string | null {
  if (until !== after && reads.changes.readLogged(until)?.source !== source) return null
  const next = reads.changes.readNextLogged(source, after)
  return next === null || until === after ? (reads.changes.readLogged(after)?.snapshot ?? null) : next.previous
}

/** Says where the log begins; throws `bad_request` where `since` is written as nothing that it may have. */
function unknown({ changes }: Pick<Reads, 'changes'>, since: string, source: SourceName | null, now: number): Problem {
  const isTime = timeOfSince(since, now) !== null
  const given = since.slice(0, 80)
  if (!isTime && !isSnapshotName(since))
    throw new MirrorError('bad_request', `since=${given} is none of: ${SINCE_FORMS_HERE}`)
  const where = source === null ? '' : ` of ${source}`
  const oldest = changes.readNextLogged(source ?? 'osv', 0)
  const begins = oldest === null ? null : toIso(oldest.publishedAt)
  const log = begins === null ? `the log${where} is empty` : `the log${where} begins on ${begins}, after ${given}`
  const what = isTime ? log : `the snapshot ${given}${where} is not known here, or too long ago`
  const earliest = begins === null ? '' : `; the earliest time that is known is since=${begins}`
  const message =
    begins === null
      ? `${what}: nothing of it was published here yet`
      : `${what} (data.historyDays): ` +
        `do a full read, then follow from the snapshot that X-Mirror-Snapshot names${earliest}`
  return { status: 404, error: 'unknown_snapshot', message }
}

const FOREIGN = 'after=… is not a cursor of this page: take it from the field next of the page before'

const OTHER_FILTER =
  'after=… continues a list of other packages: repeat the ecosystem, purl or tag of the first page, or begin again'

/** A position in a list of changes. It names both ends of the list, so its pages belong together across commits. */
interface ChangeCursor extends Omit<LogSpan, 'source'> {
  readonly name: string
  /** Of the filter, `''` without one. */
  readonly mark: string
}

/** Reads a cursor; null when none is given. Throws `bad_request` for one of another page. */
function readChangeCursor(given: string | null): ChangeCursor | null {
  if (given === null) return null
  const [after, until, name, mark = ''] = readToken(given)
  if (!isCount(after) || !isCount(until) || typeof name !== 'string' || typeof mark !== 'string')
    throw new MirrorError('bad_request', FOREIGN)
  return { after, until, name, mark }
}

function markOf({ key }: PackageFilter): string {
  return sha256Of(key).toString('base64url').slice(0, 6)
}
