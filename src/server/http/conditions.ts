import { parseHttpDate } from '../../base/time.ts'
import type { Problem } from './problems.ts'
import type { RequestHeaders } from './request-headers.ts'

/** What a condition is compared with. Dates in Unix seconds. */
interface Validators {
  readonly etag: string
  /** Last-Modified. */
  readonly changed: number
  /** From when on a copy that was taken here is of this content; missing: its Last-Modified. */
  readonly servedSince?: number | undefined
}

/** `proceed` with the answer, `unchanged` is a 304, `failed` a 412. */
type ConditionResult = 'proceed' | 'unchanged' | 'failed'

/** Evaluates the conditions of a GET or HEAD in the order of RFC 9110, 13.2.2. */
export function checkConditions(requestHeaders: RequestHeaders, current: Validators): ConditionResult {
  const { ifMatch, ifUnmodifiedSince, ifNoneMatch, ifModifiedSince } = requestHeaders
  if (ifMatch !== undefined) {
    if (!listsTag(ifMatch, current.etag, 'strong')) return 'failed'
  } else if (ifUnmodifiedSince !== undefined) {
    const date = parseHttpDate(ifUnmodifiedSince)
    if (date !== null && current.changed > date) return 'failed'
  }
  if (ifNoneMatch !== undefined) {
    return listsTag(ifNoneMatch, current.etag, 'weak') ? 'unchanged' : 'proceed'
  }
  if (ifModifiedSince === undefined) return 'proceed'
  return isUnchangedSince(parseHttpDate(ifModifiedSince), current) ? 'unchanged' : 'proceed'
}

/**
 * A later date than Last-Modified is that of a client's file, or of newer data where the mirror went back. It counts once this content
 * was served: Last-Modified may be upstream's, from before this mirror had it.
 */
function isUnchangedSince(date: number | null, { changed, servedSince = changed }: Validators): boolean {
  return date !== null && (date === changed || (date > changed && date >= servedSince))
}

/**
 * True when the part asked for may be sent: no If-Range, or one that matches the current validators. A date counts
 * as strong here: Last-Modified moves forward by at least a second at every change.
 */
export function rangeStillApplies(ifRange: string | undefined, current: Validators): boolean {
  if (ifRange === undefined) return true
  const value = ifRange.trim()
  if (value.startsWith('"')) return value === current.etag
  return parseHttpDate(value) === current.changed
}

/** Whether a list of entity tags, or `*`, names this one. A weak tag only matches in a weak comparison. */
function listsTag(list: string, etag: string, comparison: 'weak' | 'strong'): boolean {
  if (list.trim() === '*') return true
  for (const [, weak, tag] of list.matchAll(/(W\/)?("[^"]*")/g)) {
    if (tag === etag && (comparison === 'weak' || weak === undefined)) return true
  }
  return false
}

/** A part of a representation, both ends inclusive. */
interface RangePart {
  readonly start: number
  readonly end: number
}

/** What is sent of a representation, with which status, and the header fields of its length and place, as a flat list. */
type ChosenPart = RangePart & { readonly status: 200 | 206; readonly fields: readonly string[] }

/** Chooses what is sent of a representation of `size` bytes for a `Range` header; a problem (416) where it has no such part. */
export function choosePart(header: string | undefined, size: number, what: string): ChosenPart | Problem {
  const range = parseRange(header, size)
  if (range === 'unsatisfiable') {
    const headers = { 'Content-Range': `bytes */${size}`, 'Accept-Ranges': 'bytes' }
    return { status: 416, error: 'range_not_satisfiable', message: `the ${what} has ${size} bytes`, headers }
  }
  const { start, end } = range === 'whole' ? { start: 0, end: size - 1 } : range
  const length = ['Content-Length', String(end - start + 1)]
  if (range === 'whole') return { start, end, status: 200, fields: length }
  return { start, end, status: 206, fields: [...length, 'Content-Range', `bytes ${start}-${end}/${size}`] }
}

/** A longer header is no range that a client means: read as none, so that no pattern ever runs over more. */
const MAX_LENGTH = 100

/**
 * Reads a `Range` header for a representation of `size` bytes (RFC 9110, 14.2). `whole`: none, several parts, or not
 * readable; a server may then send everything. `unsatisfiable`: a valid range outside the content.
 */
export function parseRange(header: string | undefined, size: number): RangePart | 'whole' | 'unsatisfiable' {
  if (header === undefined || header.length > MAX_LENGTH) return 'whole'
  const match = /^\s*bytes\s*=\s*(?:(\d+)\s*-\s*(\d*)|-\s*(\d+))\s*$/i.exec(header)
  if (match === null) return 'whole'
  const [, first, last, suffix] = match
  if (suffix !== undefined) return suffixOf(Number(suffix), size)
  const start = Number(first)
  const end = last === undefined || last === '' ? Number.POSITIVE_INFINITY : Number(last)
  if (end < start) return 'whole'
  return start >= size ? 'unsatisfiable' : { start, end: Math.min(end, size - 1) }
}

function suffixOf(length: number, size: number): RangePart | 'unsatisfiable' {
  if (length === 0 || size === 0) return 'unsatisfiable'
  return { start: Math.max(0, size - length), end: size - 1 }
}
