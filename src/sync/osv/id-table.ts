import { randomInt } from 'node:crypto'
import { freeBytes } from '../../base/free-bytes.ts'

/**
 * Hundreds of thousands of ids and stamps, outside the JavaScript heap: one text buffer and a few typed arrays
 * instead of a Map of strings. It needs a third of the memory, and the garbage collector does not scan it. Ids and
 * stamps can be passed as UTF-8 bytes of another buffer, without creating strings.
 */
export interface IdTable extends Ids {
  /**
   * Adds an id, or replaces the stamp of a known one; returns false when it was known. Ids must be well-formed
   * Unicode.
   */
  set(id: string, modified: string): boolean
  /** Does the same as `set`, from UTF-8 bytes. */
  setBytes(id: TextSlice, modified: TextSlice): boolean
}

/** A table of ids and stamps for reading. */
export interface Ids {
  readonly size: number
  /** Returns the id's ordinal in insertion order, 0 ≤ ordinal < size; undefined when it is absent. */
  get(id: string): number | undefined
  /** Does the same as `get`, from UTF-8 bytes. */
  find(bytes: Buffer, from: number, to: number): number | undefined
  idAt(ordinal: number): string
  modifiedAt(ordinal: number): string
  /** Returns the id's stamp; empty when it is absent. */
  stamp(id: string): string
  /** Compares two ids as SQLite does: by their UTF-8 bytes. */
  compare: (ordinal: number, other: number) => number
  /** Iterates over the ids in insertion order. */
  ids(): Generator<string>
}

/** Slots for each id that there is room for: at most half of them are used, so that a search ends after one or two. */
const SLOTS = 2

/** Creates an empty table. `textBytes` is the estimated size of all ids and stamps together, UTF-8 bytes. */
export function createIdTable(textBytes: number): IdTable {
  const seed = randomInt(1, 2 ** 32)
  const ids = createTexts(textBytes)
  const stamps = createTexts(textBytes) // memory that is never written to takes none
  let stampOf = new Uint32Array(1024) // ordinal → number of its stamp
  let slots = new Uint32Array(1024 * SLOTS) // ordinal + 1; 0 is free. Hashes are not kept: that would be 4 bytes more for each id
  const written = [createScratch(), createScratch()] as const

  /** Returns the slot of the id, or the free slot where it belongs. */
  const slotOf = (bytes: Buffer, from: number, to: number, hash: number): number => {
    const mask = slots.length - 1
    for (let slot = hash & mask; ; slot = (slot + 1) & mask) {
      const used = slots[slot] ?? 0
      if (used === 0) return slot
      if (ids.equals(used - 1, bytes, from, to)) return slot
    }
  }
  const grow = (): void => {
    stampOf = doubled(stampOf)
    slots = rehashed(slots, ids, seed)
  }
  const setBytes = (id: TextSlice, modified: TextSlice): boolean => {
    const { bytes, from, to } = id
    const hash = hashOf(bytes, from, to, seed)
    const known = slots[slotOf(bytes, from, to, hash)] ?? 0
    if (known > 0) stampOf[known - 1] = stamps.append(modified)
    if (known > 0) return false
    if (ids.count() === stampOf.length) grow()
    const ordinal = ids.add(id)
    stampOf[ordinal] = stamps.append(modified)
    slots[slotOf(bytes, from, to, hash)] = ordinal + 1
    return true
  }
  const find = (bytes: Buffer, from: number, to: number): number | undefined => {
    const used = slots[slotOf(bytes, from, to, hashOf(bytes, from, to, seed))] ?? 0
    return used === 0 ? undefined : used - 1
  }
  const get = (id: string): number | undefined => {
    const { bytes, from, to } = written[0](id)
    return find(bytes, from, to)
  }
  const stampAt = (ordinal: number | undefined): string =>
    ordinal === undefined ? '' : stamps.at(stampOf[ordinal] ?? 0)
  return {
    get size() {
      return ids.count()
    },
    set: (id, modified) => setBytes(written[0](id), written[1](modified)),
    setBytes,
    get,
    find,
    idAt: ids.at,
    compare: ids.compare,
    modifiedAt: stampAt,
    stamp: (id) => stampAt(get(id)),
    ids: () => eachText(ids),
  }
}

/** Creates an encoder that writes a text into its own buffer; the bytes are valid until the next call. */
function createScratch(): (text: string) => TextSlice {
  const slice = { bytes: Buffer.allocUnsafeSlow(512), from: 0, to: 0 }
  return (text) => {
    const most = text.length * 3
    if (most > slice.bytes.length) slice.bytes = Buffer.allocUnsafeSlow(most)
    slice.to = slice.bytes.write(text)
    return slice
  }
}

/** Returns twice as many slots, filled with the ordinals by the hashes of their ids, and frees the old ones. */
function rehashed(old: Uint32Array, ids: Texts, seed: number): Uint32Array<ArrayBuffer> {
  const slots = new Uint32Array(old.length * 2)
  freeBytes(old)
  for (let ordinal = 0; ordinal < ids.count(); ordinal++) {
    let slot = ids.hash(ordinal, seed) & (slots.length - 1)
    while (slots[slot] !== 0) slot = (slot + 1) & (slots.length - 1)
    slots[slot] = ordinal + 1
  }
  return slots
}

/** Returns FNV-1a of bytes with the table's random seed, so that colliding ids cannot be prepared. */
function hashOf(bytes: Buffer, from: number, to: number, seed: number): number {
  let hash = seed
  for (let at = from; at < to; at++) hash = Math.imul(hash ^ (bytes[at] ?? 0), 0x01000193)
  return (hash ^ (hash >>> 15)) >>> 0
}

/** Bytes `from` to `to` (exclusive) of a buffer. */
export interface TextSlice {
  bytes: Buffer
  from: number
  to: number
}

/** Texts stored consecutively in one buffer, by number. */
type Texts = ReturnType<typeof createTexts>

function* eachText(texts: Texts): Generator<string> {
  for (let number = 0; number < texts.count(); number++) yield texts.at(number)
}

/** Creates an empty buffer of texts with an initial capacity of `bytes`. */
function createTexts(bytes: number) {
  let text = Buffer.allocUnsafeSlow(Math.max(64, bytes))
  let ends = new Uint32Array(1024)
  let count = 0
  let used = 0
  const startOf = (number: number): number => (number === 0 ? 0 : (ends[number - 1] ?? 0))
  const add = ({ bytes: from, from: start, to }: TextSlice): number => {
    const length = to - start
    if (used + length > text.length) text = grown(text, used + length)
    for (let i = 0; i < length; i++) text[used + i] = from[start + i] ?? 0 // short texts: faster than `copy`
    used += length
    if (count === ends.length) ends = doubled(ends)
    ends[count] = used
    return count++
  }
  const equals = (number: number, other: Buffer, from: number, to: number): boolean => {
    const start = startOf(number)
    const length = to - from
    if ((ends[number] ?? 0) - start !== length) return false
    for (let i = 0; i < length; i++) if (text[start + i] !== other[from + i]) return false
    return true
  }
  return {
    /** Adds a text and returns its number. */
    add,
    /** Does the same as `add`; a text equal to the previous one shares its number. */
    append(slice: TextSlice): number {
      const last = count - 1
      return last >= 0 && equals(last, slice.bytes, slice.from, slice.to) ? last : add(slice)
    },
    at: (number: number): string => text.toString('utf8', startOf(number), ends[number]),
    equals,
    compare: (number: number, other: number): number => {
      const start = startOf(number)
      const otherStart = startOf(other)
      const length = (ends[number] ?? 0) - start
      const otherLength = (ends[other] ?? 0) - otherStart
      for (let i = 0; i < length && i < otherLength; i++) {
        const by = (text[start + i] ?? 0) - (text[otherStart + i] ?? 0)
        if (by !== 0) return by
      }
      return length - otherLength
    },
    /** Returns `hashOf` of a text. */
    hash: (number: number, seed: number): number => hashOf(text, startOf(number), ends[number] ?? 0, seed),
    count: (): number => count,
  }
}

/** Returns a copy of the array with twice the capacity, and frees the array. */
function doubled(array: Uint32Array<ArrayBuffer>): Uint32Array<ArrayBuffer> {
  const twice = new Uint32Array(array.length * 2)
  twice.set(array)
  freeBytes(array)
  return twice
}

/** Returns a copy of the buffer with at least this capacity, and frees the buffer. */
function grown(buffer: Buffer<ArrayBuffer>, atLeast: number): Buffer<ArrayBuffer> {
  const larger = Buffer.allocUnsafeSlow(Math.max(atLeast, buffer.length * 2))
  buffer.copy(larger)
  freeBytes(buffer)
  return larger
}
