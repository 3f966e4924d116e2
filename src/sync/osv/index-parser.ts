import { isUtf8 } from 'node:buffer'
import { sha256Of } from '../../core/digest.ts'
import { MirrorError } from '../../core/errors.ts'
import { OSV_INDEX } from '../../domain/feed-paths.ts'
import { type IdTable, createIdTable } from './id-table.ts'
import type { OsvScope } from '../../domain/osv-scope.ts'
import { faultOfRecordId, shownId } from '../../domain/record-id.ts'
import { type PlainEntry, plainEntryEnd, skipBlanks } from './index-entry.ts'

/** The index as a set: each id with its stamp; stamps are compared as opaque byte strings. */
export interface OsvIndex {
  /** SHA-256 of the index's bytes. */
  sha256: Buffer
  /** Every listed id with its stamp. */
  ids: IdTable
  /** Number of entries that repeat an id; the last one counts. */
  duplicates: number
  /** Number of entries that cannot be mirrored, including those without an id; they are reported and skipped. */
  unusable: number
  /** Number of entries without an id, whose record is unknown. */
  unnamed: number
  /** The first unusable entries for the run's facts, each with the reason. */
  skipped: string[]
  /** The scope that `ids` was narrowed to; null: it has every listed id. */
  scope: IndexScope | null
}

/** What upstream lists and the scope leaves out. */
export interface IndexScope {
  readonly scope: OsvScope
  /** Every id that upstream lists, with its stamp. */
  readonly listed: IdTable
  /** Ids out of scope by their content, with the stamp that was judged; a run adds those that it judges. */
  readonly outside: IdTable
  /** Number of ids in `outside` that were stored as such when the run began. */
  readonly stored: number
  /** Ids that were stored as out of scope and must be judged again, or are not listed any more. */
  readonly outdated: readonly string[]
}

/** Maximum unusable entries that a run names. */
const MAX_SKIPPED = 20

const QUOTE = 0x22
const BACKSLASH = 0x5c
const OPEN = 0x7b
const CLOSE = 0x7d
const LIST_OPEN = 0x5b
const LIST_CLOSE = 0x5d
const COMMA = 0x2c
/** Byte order mark, which some programs write at the start of a file. */
const BOM = Buffer.from('\ufeff')
/** Maximum size of an entry (an id and a date), bytes: a larger one is an attack or an error. */
const MAX_ENTRY_BYTES = 1_000_000

/**
 * Parses all.json, a top-level array of `{id, modified}` (wire facts). Plain entries are read from the bytes
 * directly, any other is parsed from its own slice, so that no object tree of the whole feed is built; `plain: false`
 * parses all of them. An entry that is not such an object, or has an id that cannot be mirrored, is skipped. Throws
 * `upstream_shape` if it is not a JSON array, or has too many skipped entries.
 */
export function parseIndex(bytes: Buffer, { plain = true } = {}): OsvIndex {
  if (!isUtf8(bytes)) throw shape('it is not UTF-8')
  const index: OsvIndex = {
    sha256: sha256Of(bytes),
    ids: createIdTable(bytes.length >>> 1),
    duplicates: 0,
    unusable: 0,
    unnamed: 0,
    skipped: [],
    scope: null,
  }
  let number = 0
  const none = { bytes, from: 0, to: 0 }
  const entry = { id: { ...none }, modified: { ...none } }
  const take = (at: number): number => {
    const end = plainEntryEnd(bytes, at, entry)
    if (end === 0 || end - at > MAX_ENTRY_BYTES || !isPlainId(entry.id)) return 0
    number++
    if (!index.ids.setBytes(entry.id, entry.modified)) index.duplicates++
    return end
  }
  const parse = (from: number, to: number): void => {
    if (to - from > MAX_ENTRY_BYTES) throw shape(`an entry has ${to - from} bytes`)
    number++
    const parsed = parseEntry(bytes.toString('utf8', from, to))
    if (typeof parsed === 'string') skip(index, `entry ${number}: ${parsed}`)
    else if (parsed.fault !== null) skip(index, `${shownId(parsed.id)}: ${parsed.fault}`)
    else if (!index.ids.set(parsed.id, parsed.modified)) index.duplicates++
    if (typeof parsed === 'string') index.unnamed++
  }
  eachEntry(bytes, parse, plain ? take : undefined)
  refuseUnusable(index)
  return index
}

function skip(index: OsvIndex, why: string): void {
  index.unusable++
  if (index.skipped.length < MAX_SKIPPED) index.skipped.push(why)
}

/**
 * Returns whether an id is ASCII without slashes and not `all`, as nearly all are: such an id needs no further check.
 */
function isPlainId({ bytes, from, to }: PlainEntry['id']): boolean {
  if (to - from > 200 || (to - from === 3 && bytes.toString('latin1', from, to) === 'all'))
    return false
  for (let at = from; at < to; at++) {
    const byte = bytes[at] ?? 0
    if (byte < 0x20 || byte > 0x7e || byte === 0x2f || byte === BACKSLASH) return false
  }
  return true
}

function refuseUnusable(index: OsvIndex): void {
  const total = index.ids.size + index.duplicates + index.unusable
  if (index.unusable > 20 && index.unusable > total / 100) {
    throw shape(
      `${index.unusable} of ${total} entries have no id, or one that cannot be mirrored; the first: ${index.skipped[0] ?? ''}`,
    )
  }
}

/** Returns the stamp of an id in the index; empty when it is not listed. */
export function listedStamp({ ids }: OsvIndex, id: string): string {
  const ordinal = ids.get(id)
  return ordinal === undefined ? '' : ids.modifiedAt(ordinal)
}

/**
 * Returns the index that a partial mirror serves: upstream's own bytes, entry by entry, without those for which
 * `keep` returns false; where `keep` returns a stamp, it replaces upstream's.
 */
export function narrowIndex(
  bytes: Buffer,
  keep: (id: string) => boolean | { modified: string },
): Buffer {
  const parts: Buffer[] = []
  eachEntry(bytes, (from, to) => {
    const entry = parseEntry(bytes.toString('utf8', from, to))
    if (typeof entry === 'string' || entry.fault !== null) return
    const kept = keep(entry.id)
    if (kept === false) return
    if (parts.length > 0) parts.push(Buffer.from(','))
    if (kept === true) parts.push(bytes.subarray(from, to))
    else parts.push(Buffer.from(JSON.stringify({ id: entry.id, modified: kept.modified })))
  })
  return Buffer.concat([Buffer.from('['), ...parts, Buffer.from(']')])
}

/** Parses an entry; `fault` is the reason why its id is unusable. A string is the reason why it has no id. */
function parseEntry(text: string): { id: string; modified: string; fault: string | null } | string {
  let value: unknown
  try {
    value = JSON.parse(text)
  } catch {
    throw shape(`an entry is not JSON: ${text.slice(0, 80)}`)
  }
  if (typeof value !== 'object' || value === null || Array.isArray(value))
    return `it is not an object: ${text.trim().slice(0, 40)}`
  if (!('id' in value)) return 'it has no id'
  const { id } = value
  if (typeof id !== 'string') return 'its id is not text'
  if (id === '') return 'its id is empty'
  // An unusable stamp must not make a listed record look removed.
  const modified = 'modified' in value && typeof value.modified === 'string' ? value.modified : ''
  return { id, modified, fault: faultOfRecordId(id) }
}

/**
 * Calls `visit` with the bounds of each entry of the top-level array; only commas and white space may separate
 * entries. Entries that `take` reads (it returns their end) are not visited.
 */
function eachEntry(
  bytes: Buffer,
  visit: (from: number, to: number) => void,
  take: (at: number) => number = () => 0,
): void {
  let at = skipBlanks(bytes, bytes.subarray(0, BOM.length).equals(BOM) ? BOM.length : 0)
  if (bytes[at] !== LIST_OPEN) throw shape(describeStart(bytes))
  at = skipBlanks(bytes, at + 1)
  if (bytes[at] !== LIST_CLOSE) {
    for (;;) {
      const taken = take(at)
      const end = taken > 0 ? taken : entryEnd(bytes, at)
      if (taken === 0) visit(at, end)
      at = skipBlanks(bytes, end)
      if (bytes[at] !== COMMA) break
      at = skipBlanks(bytes, at + 1)
    }
  }
  if (bytes[at] !== LIST_CLOSE || skipBlanks(bytes, at + 1) !== bytes.length) {
    throw shape(`it is not a well-formed array: byte ${at} of ${bytes.length}`)
  }
}

/** Returns the end of the value that starts at a position; the parser checks whether it is JSON. */
function entryEnd(bytes: Buffer, from: number): number {
  let depth = 0
  for (let at = from; at < bytes.length; at++) {
    const byte = bytes[at]
    if (byte === QUOTE) {
      for (at++; at < bytes.length && bytes[at] !== QUOTE; at++) if (bytes[at] === BACKSLASH) at++
    } else if (byte === OPEN || byte === LIST_OPEN) depth++
    else if (depth === 0 && (byte === COMMA || byte === LIST_CLOSE || byte === CLOSE)) {
      if (at > from) return at
      throw shape(`byte ${from} does not begin an entry`)
    } else if ((byte === CLOSE || byte === LIST_CLOSE) && --depth === 0) return at + 1
  }
  throw shape('it ends within an entry')
}

function describeStart(bytes: Buffer): string {
  if (bytes.length === 0) return 'the answer is empty'
  return `it is not a JSON array; it begins with ${JSON.stringify(bytes.toString('utf8', 0, 40))}`
}

function shape(why: string): MirrorError {
  return new MirrorError('upstream_shape', `${OSV_INDEX}: ${why}`)
}
