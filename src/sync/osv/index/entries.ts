import { MirrorError } from '../../../base/errors.ts'
import { OSV_INDEX } from '../../../base/domain/feed-paths.ts'
import type { TextSlice } from '../id-table.ts'

const QUOTE = 0x22
const BACKSLASH = 0x5c
const OPEN = 0x7b
const CLOSE = 0x7d
const COLON = 0x3a
const COMMA = 0x2c
const LIST_OPEN = 0x5b
const LIST_CLOSE = 0x5d
/** Maximum size of an entry (an id and a date), bytes: a larger one is an attack or an error. */
export const MAX_ENTRY_BYTES = 1_000_000
const ID = Buffer.from('id"')
const MODIFIED = Buffer.from('modified"')

/** Positions of the id and the stamp of a plain entry. */
export interface PlainEntry {
  id: TextSlice
  modified: TextSlice
}

/**
 * Reads an entry `{"id": "…", "modified": "…"}`, in either order, without escapes, as nearly all are. Fills `entry`
 * and returns its end; 0 for any other entry, which a JSON parser must read.
 */
export function plainEntryEnd(bytes: Buffer, at: number, entry: PlainEntry): number {
  if (bytes[at] !== OPEN) return 0
  let position = skipBlanks(bytes, at + 1)
  const idFirst = begins(bytes, position, ID)
  position = member(bytes, position, idFirst ? ID : MODIFIED, idFirst ? entry.id : entry.modified)
  if (position === 0 || bytes[position] !== COMMA) return 0
  position = skipBlanks(bytes, position + 1)
  position = member(bytes, position, idFirst ? MODIFIED : ID, idFirst ? entry.modified : entry.id)
  if (position === 0 || bytes[position] !== CLOSE || entry.id.from === entry.id.to) return 0
  return position + 1
}

/**
 * Reads `"key": "text"` and the following white space; 0 when it is something else, or the text has escapes or
 * control characters.
 */
function member(bytes: Buffer, at: number, key: Buffer, text: TextSlice): number {
  if (!begins(bytes, at, key)) return 0
  let position = skipBlanks(bytes, at + 1 + key.length)
  if (bytes[position] !== COLON) return 0
  position = skipBlanks(bytes, position + 1)
  if (bytes[position] !== QUOTE) return 0
  text.bytes = bytes
  text.from = ++position
  for (; position < bytes.length; position++) {
    const byte = bytes[position] ?? 0
    if (byte === QUOTE) break
    if (byte === BACKSLASH || byte < 0x20) return 0
  }
  if (position === bytes.length) return 0
  text.to = position
  return skipBlanks(bytes, position + 1)
}

function begins(bytes: Buffer, at: number, key: Buffer): boolean {
  if (bytes[at] !== QUOTE) return false
  for (let i = 0; i < key.length; i++) if (bytes[at + 1 + i] !== key[i]) return false
  return true
}

/** Returns the first position from `at` that is not JSON white space. */
export function skipBlanks(bytes: Buffer, at: number): number {
  for (; at < bytes.length; at++) {
    const byte = bytes[at]
    if (byte !== 0x20 && byte !== 0x0a && byte !== 0x0d && byte !== 0x09) break
  }
  return at
}

/** The bytes end within the entry. */
export const UNFINISHED = -1

/**
 * Returns the end of the value that starts at a position, which a JSON parser must read; the position itself when none
 * starts there, `UNFINISHED` when the bytes end before. Throws for one that is too long.
 */
export function entryEnd(bytes: Buffer, from: number): number {
  const most = Math.min(bytes.length, from + MAX_ENTRY_BYTES + 1)
  let depth = 0
  for (let at = from; at < most; at++) {
    const byte = bytes[at]
    if (byte === QUOTE) {
      for (at++; at < most && bytes[at] !== QUOTE; at++) if (bytes[at] === BACKSLASH) at++
    } else if (byte === OPEN || byte === LIST_OPEN) depth++
    else if (depth === 0 && (byte === COMMA || byte === LIST_CLOSE || byte === CLOSE)) return at
    else if ((byte === CLOSE || byte === LIST_CLOSE) && --depth === 0) return ended(from, at + 1)
  }
  return ended(from, most < bytes.length ? bytes.length : UNFINISHED)
}

function ended(from: number, end: number): number {
  if (end - from > MAX_ENTRY_BYTES) throw malformedIndex(`an entry has more than ${MAX_ENTRY_BYTES} bytes`)
  return end
}

/** Returns the error for an index that is not what the specification says. */
export function malformedIndex(why: string): MirrorError {
  return new MirrorError('upstream_shape', `${OSV_INDEX}: ${why}`)
}

/** A document that is no list of entries with an id; it may be an index in another form. */
export class NoEntryList extends MirrorError {
  constructor(why: string) {
    super('upstream_shape', `${OSV_INDEX}: ${why}`)
  }
}
