import { isUtf8 } from 'node:buffer'
import { sha256Of } from '../../core/digest.ts'
import { type IdTable, type Ids, createIdTable } from './id-table.ts'
import type { OsvScope } from '../../domain/osv-scope.ts'
import { faultOfRecordId, shownId } from '../../domain/record-id.ts'
import { type PlainEntry, eachEntry, plainEntryEnd, malformedIndex } from './index/entries.ts'

/** The index as a set: each id with its stamp; stamps are compared as opaque byte strings. */
export interface OsvIndex {
  /** SHA-256 of the index's bytes. */
  sha256: Buffer
  /** Every listed id with its stamp. */
  ids: Ids
  /** How it differs from the stored records, where that was found without parsing it; null: not known. */
  difference: ListedDifference | null
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

/** Ids whose strings need not exist: at a first sync, all of them. */
export interface IdList extends Iterable<string> {
  readonly length: number
}

/** The difference between the index and the stored records, as sets of (id, modified). */
export interface ListedDifference {
  added: IdList
  /** Stored under another stamp (newer or older), or suspect since an earlier run. */
  changed: string[]
  /** Stored, and not listed any more. */
  removed: string[]
  stored: number
}

/** What upstream lists and the scope leaves out. */
export interface IndexScope {
  readonly scope: OsvScope
  /** Every id that upstream lists, with its stamp. */
  readonly listed: Ids
  /** Ids out of scope by their content, with the stamp that was judged; a run adds those that it judges. */
  readonly outside: IdTable
  /** Number of ids in `outside` that were stored as such when the run began. */
  readonly stored: number
  /** Ids that were stored as out of scope and must be judged again, or are not listed any more. */
  readonly outdated: readonly string[]
}

/** Maximum unusable entries that a run names. */
const MAX_SKIPPED = 20

const BACKSLASH = 0x5c
/** Maximum size of an entry (an id and a date), bytes: a larger one is an attack or an error. */
const MAX_ENTRY_BYTES = 1_000_000

/**
 * Parses all.json, a top-level array of `{id, modified}` (wire facts). Plain entries are read from the bytes
 * directly, any other is parsed from its own slice, so that no object tree of the whole feed is built; `plain: false`
 * parses all of them. An entry that is not such an object, or has an id that cannot be mirrored, is skipped. Throws
 * `upstream_shape` if it is not a JSON array, or has too many skipped entries.
 */
export function parseIndex(bytes: Buffer, { plain = true } = {}): OsvIndex {
  if (!isUtf8(bytes)) throw malformedIndex('it is not UTF-8')
  const ids = createIdTable(bytes.length >>> 1)
  const index: OsvIndex = {
    sha256: sha256Of(bytes),
    ids,
    difference: null,
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
    const end = plainIdEntryEnd(bytes, at, entry)
    if (end === 0) return 0
    number++
    if (!ids.setBytes(entry.id, entry.modified)) index.duplicates++
    return end
  }
  const parse = (from: number, to: number): void => {
    if (to - from > MAX_ENTRY_BYTES) throw malformedIndex(`an entry has ${to - from} bytes`)
    number++
    const parsed = parseEntry(bytes.toString('utf8', from, to))
    if (typeof parsed === 'string') skip(index, `entry ${number}: ${parsed}`)
    else if (parsed.fault !== null) skip(index, `${shownId(parsed.id)}: ${parsed.fault}`)
    else if (!ids.set(parsed.id, parsed.modified)) index.duplicates++
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

/** Reads a plain entry with an id that needs no further check, as `plainEntryEnd` does; 0 for any other entry. */
export function plainIdEntryEnd(bytes: Buffer, at: number, entry: PlainEntry): number {
  const end = plainEntryEnd(bytes, at, entry)
  return end - at > MAX_ENTRY_BYTES || !isPlainId(entry.id) ? 0 : end
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
    throw malformedIndex(
      `${index.unusable} of ${total} entries have no id, or one that cannot be mirrored; the first: ${index.skipped[0] ?? ''}`,
    )
  }
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
    throw malformedIndex(`an entry is not JSON: ${text.slice(0, 80)}`)
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
