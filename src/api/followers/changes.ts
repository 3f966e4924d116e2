import { respondUnstored } from '../http/response.ts'
import type { IncomingMessage, ServerResponse } from 'node:http'
import { MirrorError } from '../../core/errors.ts'
import { type SourceName, SOURCES } from '../../domain/sources.ts'
import type { LogSpan } from '../../store/changes/log.ts'
import { toChangedName } from '../../store/changes/message.ts'
import type { Reads } from '../../store/reads.ts'
import type { Access } from '../access/access.ts'
import { CHANGES } from '../http/paths.ts'
import { type Problem, sendProblem } from '../http/problems.ts'
import { onlyValue } from '../http/request-target.ts'

/** What the page of changes is answered from. */
interface ChangesOptions {
  /** Reads of the served snapshot, so every reported change is readable. */
  readonly reads: Reads
  readonly access: Pick<Access, 'judge'>
}

/** Names on a page: the default, and the maximum. */
const PAGE = 1_000
const MAX_PAGE = 10_000
/** Characters of names on a page: with longer names it ends sooner, so that writing it never takes long. */
const MAX_CHARACTERS = 500_000
/** Names that are folded for one answer. With more of them, reading everything is the shorter way for everybody. */
const MAX_FOLDED = 10_000

/** The beginning of a snapshot's id, as `patchmirror status` prints it. */
const PREFIX = /^[0-9a-f]{12,63}$/

/** Sources whose paths are for those who have a key. */
const PRIVATE: ReadonlySet<SourceName> = new Set(['catalog', 'identity'])

/** Reports whether changes of a source are shown only to clients with a key. */
export function isPrivateSource(source: SourceName): boolean {
  return PRIVATE.has(source)
}

/**
 * Answers `/-/changes?since=SNAPSHOT`: what differs between that snapshot and the one served now, folded and paged. A
 * snapshot that is not known, or too long ago, is a 404, never an empty list. Throws `bad_request`.
 */
export function sendChanges(
  options: ChangesOptions,
  request: IncomingMessage,
  response: ServerResponse,
  query: URLSearchParams,
): void {
  const answer = answerFor(options, request, query)
  if ('status' in answer) {
    sendProblem(request, response, answer)
    return
  }
  const body = Buffer.from(JSON.stringify(answer))
  respondUnstored({ request, response }, { body, coding: 'identity', vary: null, origin: null })
}

function answerFor(
  { reads, access }: ChangesOptions,
  request: IncomingMessage,
  query: URLSearchParams,
): Problem | object {
  const given = readSince(query)
  const since = PREFIX.test(given) ? (reads.changes.findSnapshot(given) ?? given) : given
  const wanted = readSource(query)
  const limit = readLimit(query)
  const denied = wanted !== null && isPrivateSource(wanted) ? access.judge(request) : null
  if (denied !== null) return denied
  const places = reads.changes
    .findInLog(since)
    .filter(({ source }) => source === (wanted ?? source))
  const [place, another] = places
  if (place === undefined) return unknown(since, wanted)
  if (another !== undefined)
    throw new MirrorError('bad_request', 'since=… is a snapshot of two sources: add source=…')
  const refusal = isPrivateSource(place.source) ? access.judge(request) : null
  if (refusal !== null) return refusal
  const asked = { after: onlyValue(query, 'after'), limit }
  return findChanges(reads, place, since, asked) ?? unknown(since, wanted)
}

/** What differs between two snapshots of a source; folded, so that each name is listed once. */
interface FoundChanges {
  readonly source: SourceName
  /** Ids of both snapshots. */
  readonly from: string
  readonly to: string
  /** False: everything may have changed, and no names are given. */
  readonly complete: boolean
  readonly changes: readonly (ReturnType<typeof toChangedName> & {
    readonly source: SourceName
    readonly snapshot: string
  })[]
  /** Cursor of the next page; null on the last. */
  readonly next: string | null
}

/**
 * Finds what differs between a snapshot at a place in the log and the latest one, page by page: `after` is the cursor
 * of the page before. Null when the log no longer leads from there to here. Throws `bad_request` for another cursor.
 */
export function findChanges(
  reads: Pick<Reads, 'changes'>,
  { source, after }: Pick<LogSpan, 'source' | 'after'>,
  since: string,
  asked: { readonly after: string | null; readonly limit: number },
): FoundChanges | null {
  const latest = reads.changes.readLatestLogged(source)?.id ?? 0
  const cursor = readCursor(asked.after) ?? { after, until: latest, name: '' }
  const span = { ...cursor, source }
  return leadsOn(reads, span, since) ? pageOf(reads, since, span, cursor.name, asked.limit) : null
}

function pageOf(
  reads: Pick<Reads, 'changes'>,
  since: string,
  span: LogSpan,
  from: string,
  limit: number,
): FoundChanges {
  const { source, after, until } = span
  const names = reads.changes.countNames(span)
  const complete = names !== null && names <= MAX_FOLDED
  const found = complete ? reads.changes.listChanged(span, from, limit + 1) : []
  const page = found.slice(0, Math.min(limit, fitting(found)))
  const last = page.at(-1)
  return {
    source,
    from: since,
    to: reads.changes.readLogged(until)?.snapshot ?? since,
    complete,
    changes: page.map(({ name, change, snapshot }) => {
      return { source, ...toChangedName(source, name, change), snapshot }
    }),
    next:
      found.length > page.length && last !== undefined
        ? writeCursor(after, until, last.name)
        : null,
  }
}

/** How many of the names, at least one, have no more characters together than a page may. */
function fitting(found: readonly { name: string }[]): number {
  let characters = 0
  const end = found.findIndex(({ name }) => (characters += name.length) > MAX_CHARACTERS)
  return end < 0 ? found.length : Math.max(1, end)
}

/** Whether a span begins right behind the snapshot and ends at a row that is there: nothing of it was forgotten. */
function leadsOn(
  reads: Pick<Reads, 'changes'>,
  { source, after, until }: LogSpan,
  since: string,
): boolean {
  if (until !== after && reads.changes.readLogged(until)?.source !== source) return false
  const next = reads.changes.readNextLogged(source, after)
  return next === null || until === after
    ? reads.changes.readLogged(after)?.snapshot === since
    : next.previous === since
}

function unknown(since: string, source: SourceName | null): Problem {
  const where = source === null ? '' : ` of ${source}`
  const message =
    `the snapshot ${since.slice(0, 80)}${where} is not known here, or too long ago (data.changeDays): ` +
    'do a full read, then follow from the snapshot that X-Mirror-Snapshot names'
  return { status: 404, error: 'unknown_snapshot', message }
}

function readSince(query: URLSearchParams): string {
  const since = onlyValue(query, 'since')
  if (since !== null) return since
  throw new MirrorError(
    'bad_request',
    `name the snapshot that you have read: ${CHANGES}?since=… , the value of X-Mirror-Snapshot or /-/status`,
  )
}

/** The source that the query names; null when it names none. Throws `bad_request` for an unknown one. */
export function readSource(query: URLSearchParams): SourceName | null {
  const given = onlyValue(query, 'source')
  if (given === null) return null
  const source = SOURCES.find((known) => known === given)
  if (source !== undefined) return source
  throw new MirrorError('bad_request', `source=… is none of: ${SOURCES.join(', ')}`)
}

function readLimit(query: URLSearchParams): number {
  const given = onlyValue(query, 'limit')
  if (given === null) return PAGE
  const limit = /^\d{1,9}$/.test(given) ? Number(given) : 0
  if (limit >= 1 && limit <= MAX_PAGE) return limit
  throw new MirrorError('bad_request', `limit=… must be a whole number from 1 to ${MAX_PAGE}`)
}

const FOREIGN =
  'after=… is not a cursor of this page: take it from the field next of the page before'

/** Encodes a position in a list of changes. It names both ends of the list, so its pages belong together across commits. */
function writeCursor(after: number, until: number, name: string): string {
  return Buffer.from(JSON.stringify([after, until, name])).toString('base64url')
}

function readCursor(given: string | null): (Omit<LogSpan, 'source'> & { name: string }) | null {
  if (given === null) return null
  const [after, until, name] = parse(given)
  if (!isId(after) || !isId(until) || typeof name !== 'string')
    throw new MirrorError('bad_request', FOREIGN)
  return { after, until, name }
}

function parse(text: string): unknown[] {
  try {
    const value: unknown = JSON.parse(Buffer.from(text, 'base64url').toString('utf8'))
    return Array.isArray(value) ? value : []
  } catch {
    return []
  }
}

function isId(value: unknown): value is number {
  return Number.isSafeInteger(value) && Number(value) >= 0
}
