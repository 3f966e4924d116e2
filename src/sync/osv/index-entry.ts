import type { TextSlice } from './id-table.ts'

const QUOTE = 0x22
const BACKSLASH = 0x5c
const OPEN = 0x7b
const CLOSE = 0x7d
const COLON = 0x3a
const COMMA = 0x2c
const ID = Buffer.from('id"')
const MODIFIED = Buffer.from('modified"')

/** Where id and stamp of a plain entry lie. */
export interface PlainEntry {
  id: TextSlice
  modified: TextSlice
}

/**
 * Finds an entry `{"id": "…", "modified": "…"}`, in either order, whose texts need no unescaping, as nearly all are.
 * Fills `entry` and returns where it ends; 0 when it is anything else, which is for a JSON parser to judge.
 */
export function plainEntryEnd(bytes: Buffer, at: number, entry: PlainEntry): number {
  if (bytes[at] !== OPEN) return 0
  let place = skipBlanks(bytes, at + 1)
  const idFirst = begins(bytes, place, ID)
  place = member(bytes, place, idFirst ? ID : MODIFIED, idFirst ? entry.id : entry.modified)
  if (place === 0 || bytes[place] !== COMMA) return 0
  place = skipBlanks(bytes, place + 1)
  place = member(bytes, place, idFirst ? MODIFIED : ID, idFirst ? entry.modified : entry.id)
  if (place === 0 || bytes[place] !== CLOSE || entry.id.from === entry.id.to) return 0
  return place + 1
}

/** Reads `"key": "text"` and the space behind it; 0 when it is not that, or the text has escapes or control characters. */
function member(bytes: Buffer, at: number, key: Buffer, text: TextSlice): number {
  if (!begins(bytes, at, key)) return 0
  let place = skipBlanks(bytes, at + 1 + key.length)
  if (bytes[place] !== COLON) return 0
  place = skipBlanks(bytes, place + 1)
  if (bytes[place] !== QUOTE) return 0
  text.bytes = bytes
  text.from = ++place
  for (; place < bytes.length; place++) {
    const byte = bytes[place] ?? 0
    if (byte === QUOTE) break
    if (byte === BACKSLASH || byte < 0x20) return 0
  }
  if (place === bytes.length) return 0
  text.to = place
  return skipBlanks(bytes, place + 1)
}

function begins(bytes: Buffer, at: number, key: Buffer): boolean {
  if (bytes[at] !== QUOTE) return false
  for (let i = 0; i < key.length; i++) if (bytes[at + 1 + i] !== key[i]) return false
  return true
}

/** The first place from `at` on that holds none of JSON's white space. */
export function skipBlanks(bytes: Buffer, at: number): number {
  for (; at < bytes.length; at++) {
    const byte = bytes[at]
    if (byte !== 0x20 && byte !== 0x0a && byte !== 0x0d && byte !== 0x09) break
  }
  return at
}
