import { createHash } from 'node:crypto'
import { createPacker } from '../../core/gzip/pieces.ts'
import type { OsvScope } from '../../domain/osv-scope.ts'
import { faultOfRecordId, shownId } from '../../domain/record-id.ts'
import { contentPieces, sizeOf } from '../../store/database/gzip.ts'
import { type IdTable, type Ids, createIdTable } from './id-table.ts'
import { MAX_ENTRY_BYTES, type PlainEntry, malformedIndex, plainEntryEnd } from './index/entries.ts'
import { type ListReader, createListReader } from './index/list-reader.ts'

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
const BEGIN = Buffer.from('[')
const COMMA = Buffer.from(',')

/** Reads an index while its bytes arrive. */
export interface IndexReader extends Pick<ListReader, 'push'> {
  /** Ends with a last piece; throws as `parseIndex`. */
  end(last?: Buffer): OsvIndex
}

/**
 * Parses all.json, a top-level array of `{id, modified}` (wire facts). Plain entries are read from the bytes
 * directly, any other is parsed from its own slice, so that no object tree of the whole feed is built; `plain: false`
 * parses all of them. An entry that is not such an object, or has an id that cannot be mirrored, is skipped. Throws
 * `upstream_shape` if it is not a JSON array, or has too many skipped entries.
 */
export function parseIndex(bytes: Buffer, options: { plain?: boolean } = {}): OsvIndex {
  return createIndexReader(bytes.length, options).end(bytes)
}

/** Does the same with the content of a stored member, without having it in memory as a whole. */
export async function parseMember(member: Buffer): Promise<OsvIndex> {
  const reader = createIndexReader(sizeOf(member))
  for await (const piece of contentPieces(member, sizeOf(member))) reader.push(piece)
  return reader.end()
}

/** Creates a reader of an index of about `size` bytes. */
export function createIndexReader(
  size: number,
  { plain = true, windowBytes }: { plain?: boolean; windowBytes?: number } = {},
): IndexReader {
  const ids = createIdTable(size >>> 1)
  const index = { ids, duplicates: 0, unusable: 0, unnamed: 0, skipped: [] as string[] }
  let number = 0
  const none = { bytes: Buffer.alloc(0), from: 0, to: 0 }
  const entry = { id: { ...none }, modified: { ...none } }
  const take = (bytes: Buffer, at: number): number => {
    const end = plainIdEntryEnd(bytes, at, entry)
    if (end === 0) return 0
    number++
    if (!ids.setBytes(entry.id, entry.modified)) index.duplicates++
    return end
  }
  const visit = (bytes: Buffer, from: number, to: number): void => {
    number++
    const parsed = parseEntry(bytes.toString('utf8', from, to))
    if (typeof parsed === 'string') skip(index, `entry ${number}: ${parsed}`)
    else if (parsed.fault !== null) skip(index, `${shownId(parsed.id)}: ${parsed.fault}`)
    else if (!ids.set(parsed.id, parsed.modified)) index.duplicates++
    if (typeof parsed === 'string') index.unnamed++
  }
  const list = createListReader(plain ? { visit, take } : { visit }, windowBytes)
  return {
    push: list.push,
    end(last) {
      const sha256 = list.end(last)
      refuseUnusable(index)
      return { sha256, difference: null, scope: null, ...index }
    },
  }
}

type Entries = Pick<OsvIndex, 'ids' | 'duplicates' | 'unusable' | 'skipped'>

function skip(index: Entries, why: string): void {
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

function refuseUnusable(index: Entries): void {
  const total = index.ids.size + index.duplicates + index.unusable
  if (index.unusable > 20 && index.unusable > total / 100) {
    throw malformedIndex(
      `${index.unusable} of ${total} entries have no id, or one that cannot be mirrored; the first: ${index.skipped[0] ?? ''}`,
    )
  }
}

/** An index to serve: its bytes as a gzip member, their size and digest. */
export interface PackedIndex {
  body: Buffer
  size: number
  sha256: Buffer
}

/**
 * Returns the index that a partial mirror serves: upstream's own bytes, entry by entry, without those for which
 * `keep` returns false; where `keep` returns a stamp, it replaces upstream's. `member` is upstream's index, stored.
 */
export async function narrowIndex(
  member: Buffer,
  keep: (id: string) => boolean | { modified: string },
): Promise<PackedIndex> {
  const packer = createPacker()
  const digest = createHash('sha256')
  let size = 0
  const add = (part: Buffer): void => {
    digest.update(part)
    packer.push(part)
    size += part.length
  }
  let between = BEGIN
  const visit = (bytes: Buffer, from: number, to: number): void => {
    const entry = parseEntry(bytes.toString('utf8', from, to))
    if (typeof entry === 'string' || entry.fault !== null) return
    const kept = keep(entry.id)
    if (kept === false) return
    add(between)
    between = COMMA
    if (kept === true) add(bytes.subarray(from, to))
    else add(Buffer.from(JSON.stringify({ id: entry.id, modified: kept.modified })))
  }
  const list = createListReader({ visit })
  for await (const piece of contentPieces(member, sizeOf(member))) list.push(piece)
  list.end()
  add(Buffer.from(between === COMMA ? ']' : '[]'))
  return { body: packer.end(), size, sha256: digest.digest() }
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
