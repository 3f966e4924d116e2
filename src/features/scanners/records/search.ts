import { jsonTextOf } from '../../../base/json/objects.ts'
import { type Asked, type OsvRecord, type Uncompared, concerns } from './affected.ts'
import { askVersion } from './ranges.ts'
import type { Steps } from '../../../base/pacing.ts'
import type { Query } from '../../../documents/records/query.ts'
import { sha256Of } from '../../../base/digest.ts'
import { MirrorError } from '../../../base/errors.ts'

/** Where a search looks: one snapshot's index of packages and its records. */
export interface QuerySource {
  /** Ids of records that may concern the package, in id order behind `after` (''), at most `limit`. */
  listCandidates(ecosystem: string, name: string, after: string, limit: number): readonly { readonly id: string }[]
  /** The record as the ecosystem's view shows it; null when it has none of that id. */
  readRecord(ecosystem: string, id: string): SourceRecord | null
  /** The same of all ecosystems; a source without it answers only questions that name one. */
  readonly anywhere?: {
    readonly listNamed: (name: string, after: string, limit: number) => readonly { readonly id: string }[]
    readonly readRecord: (id: string) => SourceRecord | null
  }
}

/** A record's JSON, and the vendor prefixes that were taken off it; none: upstream's bytes. */
interface SourceRecord {
  readonly content: Buffer
  readonly prefixes: readonly string[]
  /** The content as `parseRecord` returns it, where the source has it already. */
  readonly parsed?: OsvRecord
  /** Returns the form that is shown of a record that was found; the content itself when not given. */
  readonly shown?: () => Pick<SourceRecord, 'content' | 'prefixes'>
}

/** A record that concerns the package. */
export interface SearchResult extends SourceRecord {
  readonly id: string
  /** As the record writes it; null when it has none. */
  readonly modified: string | null
}

/** What bounds one page. */
export interface PageBounds {
  readonly records: number
  readonly bytes: number
  /** Whether it is late: then the page ends, though not before something was looked at. */
  readonly isLate: () => boolean
  /** Awaited after each stretch of work, to yield to other work. Throws to stop the search. */
  readonly pause: () => Promise<void>
  /** Called with the bytes of each record that is found. Throws to stop the search. */
  readonly onFound?: (bytes: number) => void
}

/** A page of what was found. `next` is empty on the last one. */
export interface ResultPage {
  readonly found: readonly SearchResult[]
  readonly next: string
  /** Records about the package that were compared with the version, on this page. */
  readonly compared: number
  /** Those that could not be, or not for certain, by their ids, and why. */
  readonly uncompared: ReadonlyMap<string, Uncompared>
}

/** Records and bytes looked at in one stretch: a few milliseconds. */
const STRETCH = 64
const STRETCH_BYTES = 256 * 1024

/**
 * Looks for the records that concern a package, page by page in the order of their ids. The work is done in short stretches
 * with a pause behind each, a long record in several. Throws `bad_request` for a page token of another question.
 */
export async function search(source: QuerySource, question: Query, bounds: PageBounds): Promise<ResultPage> {
  const { ecosystem, name, version, isOfAny = false, isListedOnly = false, stream } = question
  const mark = JSON.stringify([ecosystem?.name, name, version])
  const walk: Walk = {
    after: readToken(question.pageToken, mark),
    found: [],
    bytes: 0,
    compared: 0,
    uncompared: new Map(),
  }
  const page = (whole: boolean): ResultPage => ({
    found: walk.found,
    compared: walk.compared,
    uncompared: walk.uncompared,
    next: whole ? '' : writeToken(mark, walk.after),
  })
  if (ecosystem === null && !isOfAny) return page(true)
  const asked = { ecosystem, name, version: askVersion(version), isListedOnly, ...(stream !== undefined && { stream }) }
  for (;;) {
    const outcome = await goOn(source, asked, walk, bounds)
    if (outcome !== 'more') return page(outcome === 'end')
    if (bounds.isLate()) return page(false)
    await bounds.pause()
  }
}

interface Walk {
  /** The last id that was looked at. */
  after: string
  readonly found: SearchResult[]
  bytes: number
  compared: number
  readonly uncompared: Map<string, Uncompared>
}

/** One stretch: looks at the next candidates. `end`: there are no more; `full`: the page is. */
async function goOn(
  source: QuerySource,
  asked: Asked,
  walk: Walk,
  bounds: PageBounds,
): Promise<'more' | 'end' | 'full'> {
  const { ecosystem } = asked
  const candidates = candidatesOf(source, asked, walk.after)
  let read = 0
  for (const { id } of candidates) {
    if (walk.found.length >= bounds.records || walk.bytes >= bounds.bytes) return 'full'
    if (read >= STRETCH_BYTES) return 'more'
    walk.after = id
    const record = ecosystem === null ? source.anywhere?.readRecord(id) : source.readRecord(ecosystem.name, id)
    if (record === null || record === undefined) continue
    read += record.content.length
    const parsed = record.parsed ?? parseRecord(record.content)
    const verdict = await interleave(concerns(parsed, asked, record.prefixes[0]), bounds)
    if (verdict === 'other') continue
    const isFound = verdict === 'affected' || verdict === 'likely'
    if (isFound || verdict === 'clear') walk.compared++
    else walk.uncompared.set(id, verdict)
    if (verdict === 'likely') walk.uncompared.set(id, 'stream')
    if (!isFound) continue
    const modified = typeof parsed.modified === 'string' ? parsed.modified : null
    const result = resultOf(record)
    walk.bytes += result.content.length
    bounds.onFound?.(result.content.length)
    walk.found.push({ ...result, id, modified })
  }
  return candidates.length < STRETCH ? 'end' : 'more'
}

function candidatesOf(
  source: QuerySource,
  { ecosystem, name }: Asked,
  after: string,
): readonly { readonly id: string }[] {
  if (ecosystem !== null) return source.listCandidates(ecosystem.name, name, after, STRETCH)
  return source.anywhere?.listNamed(name, after, STRETCH) ?? []
}

/** Returns what a page needs of a record: whatever else the source has of it would be kept until the page is sent. */
function resultOf(record: SourceRecord): SourceRecord {
  const { parsed } = record
  const { content, prefixes } = record.shown?.() ?? record
  return { content: withoutRest(content), prefixes, ...(parsed && { parsed }) }
}

/** Copies a content that is a small piece of a larger buffer: that would be kept as a whole until the page is sent. */
function withoutRest(content: Buffer): Buffer {
  if (content.buffer.byteLength < 2 * content.length) return content
  const copy = Buffer.allocUnsafeSlow(content.length)
  content.copy(copy)
  return copy
}

/** Does work in steps with a pause behind each, none where one is enough. */
async function interleave<Value>(work: Steps<Value>, { pause }: Pick<PageBounds, 'pause'>): Promise<Value> {
  for (;;) {
    const step = work.next()
    if (step.done === true) return step.value
    await pause()
  }
}

/** Parses a record; one that is no JSON object affects nothing. */
export function parseRecord(content: Buffer): OsvRecord {
  try {
    const value: unknown = JSON.parse(jsonTextOf(content))
    return typeof value === 'object' && value !== null ? value : {}
  } catch {
    return {}
  }
}

const MARK_BYTES = 6

/**
 * Creates the token of the next page: the query that it continues, and the last id that was checked. Ids are checked in
 * their order, so the token stays valid when the mirror serves another snapshot: new records after the position are
 * returned, records before it are not returned again.
 */
function writeToken(mark: string, lastId: string): string {
  return Buffer.concat([markBytes(mark), Buffer.from(lastId)]).toString('base64url')
}

/** Returns the id after which to continue; '' without a token. Throws `bad_request` for another query's token. */
function readToken(token: string, mark: string): string {
  if (token === '') return ''
  const bytes = Buffer.from(token, 'base64url')
  const sound = bytes.toString('base64url') === token && bytes.length > MARK_BYTES
  if (sound && bytes.subarray(0, MARK_BYTES).equals(markBytes(mark))) return bytes.toString('utf8', MARK_BYTES)
  throw new MirrorError('bad_request', 'Invalid page token.')
}

function markBytes(mark: string): Buffer {
  return sha256Of(mark).subarray(0, MARK_BYTES)
}
