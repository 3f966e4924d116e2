import { isUtf8 } from 'node:buffer'
import { createHash } from 'node:crypto'
import { MirrorError } from '../errors.ts'
import { type IdTable, createIdTable } from './id-table.ts'
import { plainEntryEnd, skipSpace } from './osv-index-entry.ts'

/** The index as a set: each id with its stamp, the stamp compared byte for byte as an opaque text. */
export interface OsvIndex {
  /** Of its bytes. */
  sha256: Buffer
  /** Every listed id with its stamp. */
  ids: IdTable
  /** Entries that repeat an id; the last one counts. */
  duplicates: number
  /** Entries without a usable id; they cannot be mirrored and are left alone. */
  unusable: number
}

const QUOTE = 0x22
const BACKSLASH = 0x5c
const OPEN = 0x7b
const CLOSE = 0x7d
const LIST_OPEN = 0x5b
const LIST_CLOSE = 0x5d
/** An entry is an id and a date; one of a megabyte is an attack or a mistake. */
const MAX_ENTRY_BYTES = 1_000_000

/**
 * Reads all.json, a top-level array of `{id, modified}` (wire facts). Plain entries are taken from the bytes as they
 * lie, any other is parsed from its own slice, so that no tree of the whole feed is ever built; `plain: false` parses
 * them all. Throws `upstream_shape` when it is anything else.
 */
export function parseIndex(bytes: Buffer, { plain = true } = {}): OsvIndex {
  if (!isUtf8(bytes)) throw shape('it is not UTF-8')
  const index: OsvIndex = {
    sha256: createHash('sha256').update(bytes).digest(),
    ids: createIdTable(bytes.length >>> 1),
    duplicates: 0,
    unusable: 0,
  }
  const none = { bytes, from: 0, to: 0 }
  const entry = { id: { ...none }, modified: { ...none } }
  const take = (at: number): number => {
    const end = plainEntryEnd(bytes, at, entry)
    if (end === 0 || end - at > MAX_ENTRY_BYTES) return 0
    if (!index.ids.setBytes(entry.id, entry.modified)) index.duplicates++
    return end
  }
  const parse = (from: number, to: number): void => {
    if (to - from > MAX_ENTRY_BYTES) throw shape(`an entry has ${to - from} bytes`)
    const parsed = parseEntry(bytes.toString('utf8', from, to))
    if (parsed === null) index.unusable++
    else if (!index.ids.set(parsed.id, parsed.modified)) index.duplicates++
  }
  eachEntry(bytes, parse, plain ? take : undefined)
  refuseUnusable(index)
  return index
}

function refuseUnusable(index: OsvIndex): void {
  const total = index.ids.size + index.duplicates + index.unusable
  if (index.unusable > 20 && index.unusable > total / 100) {
    throw shape(`${index.unusable} of ${total} entries have no id`)
  }
}

/** The stamp under which the index lists an id; empty when it does not list it. */
export function listedStamp({ ids }: OsvIndex, id: string): string {
  const ordinal = ids.get(id)
  return ordinal === undefined ? '' : ids.modifiedAt(ordinal)
}

/**
 * The index that the mirror serves when it does not hold all that upstream lists: upstream's own bytes, entry
 * by entry, without those that `keep` refuses; where `keep` gives a text, that stamp instead of upstream's.
 */
export function narrowIndex(
  bytes: Buffer,
  keep: (id: string) => boolean | { modified: string },
): Buffer {
  const parts: Buffer[] = []
  eachEntry(bytes, (from, to) => {
    const entry = parseEntry(bytes.toString('utf8', from, to))
    const verdict = entry !== null && keep(entry.id)
    if (entry === null || verdict === false) return
    if (parts.length > 0) parts.push(Buffer.from(','))
    if (verdict === true) parts.push(bytes.subarray(from, to))
    else parts.push(Buffer.from(JSON.stringify({ id: entry.id, modified: verdict.modified })))
  })
  return Buffer.concat([Buffer.from('['), ...parts, Buffer.from(']')])
}

function parseEntry(text: string): { id: string; modified: string } | null {
  let value: unknown
  try {
    value = JSON.parse(text)
  } catch {
    throw shape(`an entry is not JSON: ${text.slice(0, 80)}`)
  }
  if (typeof value !== 'object' || value === null || !('id' in value)) return null
  const { id } = value
  if (typeof id !== 'string' || id === '') return null
  // A listed record is listed, whatever its stamp: an unusable one must not make it look removed.
  const modified = 'modified' in value && typeof value.modified === 'string' ? value.modified : ''
  // The table holds UTF-8: half a character becomes U+FFFD here, so that it is one id and the same everywhere.
  return { id: id.toWellFormed(), modified }
}

/**
 * Calls `visit` with the bounds of each `{…}` of the top-level array; everything between must be commas and space.
 * What `take` has taken, telling its end, is not visited.
 */
function eachEntry(
  bytes: Buffer,
  visit: (from: number, to: number) => void,
  take: (at: number) => number = () => 0,
): void {
  let at = skipSpace(bytes, 0)
  if (bytes[at] !== LIST_OPEN) throw shape(beginning(bytes))
  at = skipSpace(bytes, at + 1)
  if (bytes[at] !== LIST_CLOSE) {
    for (;;) {
      const taken = take(at)
      const end = taken > 0 ? taken : entryEnd(bytes, at)
      if (taken === 0) visit(at, end)
      at = skipSpace(bytes, end)
      if (bytes[at] !== 0x2c) break
      at = skipSpace(bytes, at + 1)
    }
  }
  if (bytes[at] !== LIST_CLOSE || skipSpace(bytes, at + 1) !== bytes.length) {
    throw shape(`it is not a well-formed array: byte ${at} of ${bytes.length}`)
  }
}

function entryEnd(bytes: Buffer, from: number): number {
  if (bytes[from] !== OPEN) throw shape(`byte ${from} does not begin an entry`)
  let depth = 0
  for (let at = from; at < bytes.length; at++) {
    const byte = bytes[at]
    if (byte === QUOTE) {
      for (at++; at < bytes.length && bytes[at] !== QUOTE; at++) if (bytes[at] === BACKSLASH) at++
    } else if (byte === OPEN) depth++
    else if (byte === CLOSE && --depth === 0) return at + 1
  }
  throw shape('it ends within an entry')
}

function beginning(bytes: Buffer): string {
  if (bytes.length === 0) return 'the answer is empty'
  return `it is not a JSON array; it begins with ${JSON.stringify(bytes.toString('utf8', 0, 40))}`
}

function shape(why: string): MirrorError {
  return new MirrorError('upstream_shape', `/external/osv/all.json: ${why}`)
}
