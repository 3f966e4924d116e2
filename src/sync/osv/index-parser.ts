import { isUtf8 } from 'node:buffer'
import { createHash } from 'node:crypto'
import { sha256Of } from '../../base/digest.ts'
import { createPacker } from '../../base/gzip/pieces.ts'
import { faultOfRecordId, shownId } from '../../base/domain/record-id.ts'
import { readIndexForm } from '../../base/json/forms/index-forms.ts'
import { refuseCostly } from '../../base/json/limits.ts'
import { jsonTextOf } from '../../base/json/objects.ts'
import { contentOf, contentPieces, sizeOf } from '../../store/database/gzip.ts'
import { type Ids, createIdTable } from './id-table.ts'
import {
  MAX_ENTRY_BYTES,
  NoEntryList,
  type PlainEntry,
  malformedIndex,
  plainEntryEnd,
  skipBlanks,
} from './index/entries.ts'
import { type ListReader, createListReader } from './index/list-reader.ts'

/** The index as a set: each id with its stamp; stamps are compared as opaque byte strings. */
export interface OsvIndex {
  /** SHA-256 of the index's bytes. */
  sha256: Buffer
  /** Every listed id with its stamp. */
  ids: Ids
  /** Number of entries that repeat an id; the last one counts. */
  duplicates: number
  /** Number of entries that cannot be mirrored, including those without an id; they are reported and skipped. */
  unusable: number
  /** Number of entries without an id, whose record is unknown. */
  unnamed: number
  /** The first unusable entries for the run's facts, each with the reason. */
  skipped: string[]
  /** Ids whose entries have no stamp: only the records themselves show whether they changed. */
  unstamped: ReadonlySet<string>
  /** Whether the entries are in one array of objects with an id, as nearly always; else `readIndexForm` reads them. */
  isList: boolean
  /** The scope that `ids` was narrowed to; null: it has every listed id. */
  scope: IndexScope | null
  /** What upstream may lack itself, as a mirror, as a copy that is behind, or on this page; null: nothing that it says. */
  lacks: UpstreamLack | null
}

/** What upstream may lack of the records. */
export interface UpstreamLack {
  /** For people. */
  readonly why: string
  /** Its scope as a mirror, as text (`parseScopeText`); null: it has none, or what it lacks is of another cause. */
  readonly scope: string | null
}

/** Ids whose strings need not exist: at a first sync, all of them. */
export interface IdList extends Iterable<string> {
  readonly length: number
}

/** What upstream lists and the scope leaves out. */
export interface IndexScope {
  /** The settings of the scope. */
  readonly text: string
  /** Every id that upstream lists, with its stamp. */
  readonly listed: Ids
  /** Ids out of scope by their content, with the stamp that was judged; a run adds those that it judges. */
  readonly outside: Ids
  /** Number of ids in `outside` that were stored as such when the run began. */
  readonly stored: number
  /** Ids that were stored as out of scope and must be judged again, or are not listed any more. */
  readonly outdated: readonly string[]
  /** Remembers under the listed stamp that a fetched record is out of scope. */
  leaveOut(id: string): void
  /** Returns whether a fetched record is in scope; one that is not is remembered as `leaveOut` does. */
  admits(id: string, record: object): boolean
  /** Returns the ids of the index without those that this run found to be out of scope. */
  kept(): Ids
  /** Returns the number of listed records that are out of scope. */
  countLeftOut(): number
}

/** Maximum unusable entries that a run names. */
const MAX_SKIPPED = 20

const BACKSLASH = 0x5c
const LIST_OPEN = 0x5b
const BEGIN = Buffer.from('[')
const COMMA = Buffer.from(',')

/** Reads an index while its bytes arrive. */
interface IndexReader extends Pick<ListReader, 'push'> {
  /** Ends with a last piece; throws as `parseIndex`. */
  end(last?: Buffer): OsvIndex
}

/**
 * Parses all.json, a top-level array of `{id, modified}` (wire facts). Plain entries are read from the bytes
 * directly, any other is parsed from its own slice, so that no object tree of the whole feed is built; `plain: false`
 * parses all of them. An entry that is not such an object, or has an id that cannot be mirrored, is skipped. What is not
 * such an array, or has too many skipped entries, is read as `readIndexForm` does. Throws `upstream_shape` if it is no
 * index of that kind either.
 */
export function parseIndex(bytes: Buffer, options: { plain?: boolean } = {}): OsvIndex {
  const reader = createIndexReader(bytes.length, options)
  return endOrReread(reader, bytes, () => bytes)
}

/** Does the same with the content of a stored member, without having it in memory as a whole where it is such an array. */
export async function parseMember(member: Buffer): Promise<OsvIndex> {
  const reader = createIndexReader(sizeOf(member))
  for await (const piece of contentPieces(member, sizeOf(member))) reader.push(piece)
  return endOrReread(reader, undefined, () => contentOf(member, sizeOf(member)))
}

/** Ends a reader; what it refuses is read from its `whole` bytes in any other form of an index. */
export function endOrReread(reader: IndexReader, last: Buffer | undefined, whole: () => Buffer): OsvIndex {
  try {
    return reader.end(last)
  } catch (error) {
    if (!(error instanceof NoEntryList)) throw error
    return parseOtherForm(whole(), error)
  }
}

/** Throws `refused`, the reason why it is not a list, where it is no index in another form either. */
function parseOtherForm(bytes: Buffer, refused: NoEntryList): OsvIndex {
  if (!isUtf8(bytes) || refuseCostly(bytes) !== null) throw refused
  const read = readIndexForm(jsonTextOf(bytes))
  if (read === null) throw refused
  if ('refused' in read) throw malformedIndex(read.refused)
  const entries = createEntries(bytes.length)
  for (const { id, modified } of read.entries) entries.add(id, modified, faultOfRecordId(id))
  const why = `the index may be one page of several: ${read.doubt}`
  const lacks = read.doubt === null ? null : { why, scope: null }
  return { ...entries.end(), sha256: sha256Of(bytes), isList: false, lacks }
}

/** Creates a reader of an index of about `size` bytes. */
export function createIndexReader(
  size: number,
  { plain = true, windowBytes }: { plain?: boolean; windowBytes?: number } = {},
): IndexReader {
  const entries = createEntries(size)
  let number = 0
  const none = { bytes: Buffer.alloc(0), from: 0, to: 0 }
  const entry = { id: { ...none }, modified: { ...none } }
  const take = (bytes: Buffer, at: number): number => {
    const end = plainIdEntryEnd(bytes, at, entry)
    if (end === 0) return 0
    number++
    entries.addBytes(entry)
    return end
  }
  const visit = (bytes: Buffer, from: number, to: number): void => {
    number++
    const parsed = parseEntry(bytes.toString('utf8', from, to))
    if (typeof parsed === 'string') entries.skipUnnamed(`entry ${number}: ${parsed}`)
    else entries.add(parsed.id, parsed.modified, parsed.fault)
  }
  const list = createListReader(plain ? { visit, take } : { visit }, windowBytes)
  return {
    push: list.push,
    end(last) {
      const sha256 = list.end(last)
      return { ...entries.end(), sha256, isList: true }
    },
  }
}

type Entries = Omit<OsvIndex, 'sha256' | 'isList'>

/** Creates the set of an index's entries, from about `size` bytes. */
function createEntries(size: number) {
  const ids = createIdTable(size >>> 1)
  const unstamped = new Set<string>()
  const counts = { duplicates: 0, unusable: 0, unnamed: 0 }
  const skipped: string[] = []
  const skip = (why: string): void => {
    counts.unusable++
    if (skipped.length < MAX_SKIPPED) skipped.push(why)
  }
  const count = (isNew: boolean): void => {
    if (!isNew) counts.duplicates++
  }
  return {
    /** Adds an entry, unless `fault` says why its id is unusable. */
    add(id: string, modified: string, fault: string | null): void {
      if (fault !== null) return skip(`${shownId(id)}: ${fault}`)
      count(ids.set(id, modified))
      if (modified === '') unstamped.add(id)
      else if (unstamped.size > 0) unstamped.delete(id)
    },
    /** Adds a plain entry, whose id needs no check. */
    addBytes({ id, modified }: PlainEntry): void {
      count(ids.setBytes(id, modified))
      const isUnstamped = modified.from === modified.to
      if (!isUnstamped && unstamped.size === 0) return
      const text = id.bytes.toString('latin1', id.from, id.to)
      if (isUnstamped) unstamped.add(text)
      else unstamped.delete(text)
    },
    skipUnnamed(why: string): void {
      counts.unnamed++
      skip(why)
    },
    /** Returns the set. Throws `upstream_shape` when too many entries were skipped. */
    end(): Entries {
      const entries = { ids, unstamped, skipped, ...counts, scope: null, lacks: null }
      refuseUnusable(entries)
      return entries
    },
  }
}

/** Reads a plain entry with an id that needs no further check, as `plainEntryEnd` does; 0 for any other entry. */
function plainIdEntryEnd(bytes: Buffer, at: number, entry: PlainEntry): number {
  const end = plainEntryEnd(bytes, at, entry)
  return end - at > MAX_ENTRY_BYTES || !isPlainId(entry.id) ? 0 : end
}

/**
 * Reports whether a stored index is a list that begins with a plain entry with a stamp, as nearly always: then the others are
 * taken to have one.
 */
export async function memberBeginsPlain(member: Buffer): Promise<boolean> {
  for await (const piece of contentPieces(member, sizeOf(member))) return beginsPlain(piece)
  return false
}

function beginsPlain(bytes: Buffer): boolean {
  const none = { bytes, from: 0, to: 0 }
  const entry = { id: { ...none }, modified: { ...none } }
  const at = skipBlanks(bytes, 0)
  if (bytes[at] !== LIST_OPEN) return false
  const end = plainIdEntryEnd(bytes, skipBlanks(bytes, at + 1), entry)
  return end > 0 && entry.modified.from < entry.modified.to
}

/**
 * Returns whether an id is ASCII without slashes and not `all`, as nearly all are: such an id needs no further check.
 */
function isPlainId({ bytes, from, to }: PlainEntry['id']): boolean {
  if (to - from > 200 || (to - from === 3 && bytes.toString('latin1', from, to) === 'all')) return false
  for (let at = from; at < to; at++) {
    const byte = bytes[at] ?? 0
    if (byte < 0x20 || byte > 0x7e || byte === 0x2f || byte === BACKSLASH) return false
  }
  return true
}

function refuseUnusable(index: Pick<Entries, 'ids' | 'duplicates' | 'unusable' | 'unnamed' | 'skipped'>): void {
  const total = index.ids.size + index.duplicates + index.unusable
  const isMany = index.unusable > 20 && index.unusable > total / 100
  if (isMany || index.unnamed > total / 2) {
    throw new NoEntryList(
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
  const { add, end } = createPackedIndex()
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
  return end()
}

/** Returns an index of entries in the usual form. */
export function packIndex(entries: Iterable<{ id: string; modified: string }>): PackedIndex {
  const { add, end } = createPackedIndex()
  let between = BEGIN
  for (const { id, modified } of entries) {
    add(between)
    add(Buffer.from(JSON.stringify({ id, modified })))
    between = COMMA
  }
  add(Buffer.from(between === COMMA ? ']' : '[]'))
  return end()
}

/** Packs an index part by part. */
function createPackedIndex(): { add: (part: Buffer) => void; end: () => PackedIndex } {
  const packer = createPacker()
  const digest = createHash('sha256')
  let size = 0
  return {
    add(part) {
      digest.update(part)
      packer.push(part)
      size += part.length
    },
    end: () => ({ body: packer.end(), size, sha256: digest.digest() }),
  }
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
