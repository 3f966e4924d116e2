import { type PlainEntry, nextEntry } from './entries.ts'
import { type IdTable, createIdTable } from '../id-table.ts'
import { plainIdEntryEnd } from '../index-parser.ts'

/** What a fetched index lists in another way than the published one. */
export interface IndexDifference {
  /** In the order of the index. */
  added: string[]
  /** In the order of ids. */
  changed: string[]
  removed: string[]
  /** Every added and changed id with its new stamp, perhaps among others. */
  listed: IdTable
}

const OPEN = 0x7b
const OPENS = 0x7b7b7b7b
/** End of the entries, instead of a position. */
const END = -1

/**
 * Compares a fetched index with the published one, which lists `records` ids, none twice, and has only usable entries.
 * Both are bytes in UTF-8. Equal bytes are not parsed, and entries between them only as far as they differ. Returns null
 * when the fetched index must be parsed: it is not a sequence of plain entries where it differs, lists an id twice, or
 * differs in too many places.
 */
export function differenceOfIndexes(
  fetched: Buffer,
  published: Buffer,
  records: number,
  isPublished: (id: string) => boolean,
): IndexDifference | null {
  // As many braces as ids: each of them begins an entry, no other is in a text or within an entry.
  if (countBraces(published) !== records) return null
  const changes: Changes = { come: [], gone: new Map(), restamped: [] }
  const one = createCursor(fetched)
  const other = createCursor(published)
  let left = 10_000 + (records >>> 2) // entries that may be read before parsing is faster
  for (;;) {
    const same = commonLength(one, other)
    if (one.at + same === fetched.length && other.at + same === published.length) break
    // Both texts are read in the same way up to here; the last brace begins the last entry that may differ.
    const brace = same === 0 ? -1 : fetched.lastIndexOf(OPEN, one.at + same - 1)
    if (brace < one.at) return null
    other.at += brace - one.at
    one.at = brace
    const read = align(one, other, changes, left)
    if (read === null) return null
    left -= read
    if (one.at === END && other.at === END) break
  }
  return sorted(changes, isPublished)
}

/** Counts four bytes at a time where there are none among them, as mostly. */
function countBraces(bytes: Buffer): number {
  let count = 0
  const head = Math.min(bytes.length, -bytes.byteOffset & 3)
  const words = new Int32Array(bytes.buffer, bytes.byteOffset + head, (bytes.length - head) >>> 2)
  const countIn = (from: number, to: number): void => {
    for (let at = from; at < to; at++) if (bytes[at] === OPEN) count++
  }
  countIn(0, head)
  for (let i = 0; i < words.length; i++) {
    const other = (words[i] ?? 0) ^ OPENS // a byte of 0 is a brace
    if (((other - 0x01010101) & ~other & 0x80808080) !== 0) countIn(head + i * 4, head + i * 4 + 4)
  }
  countIn(head + words.length * 4, bytes.length)
  return count
}

/** A position in an index: its begin, the begin of an entry, or `END`. */
interface Cursor {
  readonly bytes: Buffer
  at: number
  readonly entry: PlainEntry
}

function createCursor(bytes: Buffer): Cursor {
  const none = { bytes, from: 0, to: 0 }
  return { bytes, at: 0, entry: { id: { ...none }, modified: { ...none } } }
}

const LONGEST = 1 << 16

/** Returns the number of equal bytes from both cursors on. */
function commonLength(one: Cursor, other: Cursor): number {
  const most = Math.min(one.bytes.length - one.at, other.bytes.length - other.at)
  let common = 0
  let step = 256
  let grows = true
  while (common < most) {
    const length = Math.min(step, most - common)
    const from = one.at + common
    const start = other.at + common
    if (one.bytes.compare(other.bytes, start, start + length, from, from + length) === 0) {
      common += length
      if (grows) step = Math.min(step * 2, LONGEST)
    } else {
      if (length === 1) break
      grows = false
      step = length >>> 1
    }
  }
  return common
}

/** An entry that was read: its id, its stamp, and where the next one begins. */
interface Entry {
  id: string
  modified: string
  next: number
}

interface Changes {
  /** Entries of the fetched index that were not found at the same place in the published one. */
  come: Entry[]
  /** Those of the published one, id → stamp. */
  gone: Map<string, string>
  /** Entries at the same place with another stamp. */
  restamped: Entry[]
}

/**
 * Reads entries of both indexes, in turn, until an id is in both; moves the cursors behind its entries, or to the end of
 * both. Returns the number of entries that it read; null when that is over `most`, or an entry is not plain.
 */
function align(one: Cursor, other: Cursor, changes: Changes, most: number): number | null {
  const come = new Map<string, Entry>()
  const gone = new Map<string, Entry>()
  for (let read = 0; read <= most; read += 2) {
    const mine = readEntry(one)
    if (mine === null || (mine !== 'end' && come.has(mine.id))) return null
    if (mine !== 'end') come.set(mine.id, mine)
    const theirs = readEntry(other)
    if (theirs === null) return null
    if (theirs !== 'end') gone.set(theirs.id, theirs)
    const common = [mine, theirs].find((e) => e !== 'end' && come.has(e.id) && gone.has(e.id))
    if (common === undefined && !(mine === 'end' && theirs === 'end')) continue
    const id = common === undefined || common === 'end' ? null : common.id
    const [a, b] = id === null ? [undefined, undefined] : [come.get(id), gone.get(id)]
    changes.come.push(...before(come, id))
    for (const entry of before(gone, id)) changes.gone.set(entry.id, entry.modified)
    one.at = a?.next ?? END
    other.at = b?.next ?? END
    if (a === undefined || b === undefined) return read + 2
    if (a.modified !== b.modified) changes.restamped.push(a)
    // One index ends here, and the other one goes on.
    if ((a.next === END) === (b.next === END)) return read + 2
    come.clear()
    gone.clear()
  }
  return null
}

/** Yields the entries before one id, or all. */
function* before(entries: ReadonlyMap<string, Entry>, id: string | null): Generator<Entry> {
  for (const entry of entries.values()) {
    if (entry.id === id) return
    yield entry
  }
}

/** Reads the entry at the cursor and moves it to the next one; null unless it is a plain one within a list. */
function readEntry(cursor: Cursor): Entry | 'end' | null {
  const { bytes, at, entry } = cursor
  if (at === END) return 'end'
  const end = plainIdEntryEnd(bytes, at, entry)
  if (end === 0) return null
  const next = nextEntry(bytes, end)
  if (next === null) return null
  cursor.at = next === 'end' ? END : next
  const { id, modified } = entry
  return {
    id: bytes.toString('latin1', id.from, id.to), // plain ids are ASCII
    modified: bytes.toString('utf8', modified.from, modified.to),
    next: cursor.at,
  }
}

/** Sorts out what moved within the index, and what is listed twice (null). */
function sorted({ come, gone, restamped }: Changes, isPublished: (id: string) => boolean): IndexDifference | null {
  const listed = createIdTable(4096)
  const added: string[] = []
  const changed: string[] = []
  for (const { id, modified } of restamped) {
    if (!listed.set(id, modified)) return null
    changed.push(id)
  }
  for (const { id, modified } of come) {
    if (!listed.set(id, modified)) return null
    const previous = gone.get(id)
    if (previous === undefined) {
      if (isPublished(id)) return null
      added.push(id)
    } else if (previous !== modified) changed.push(id)
    gone.delete(id)
  }
  return { added, changed: changed.sort(), removed: [...gone.keys()].sort(), listed }
}
