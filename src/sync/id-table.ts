import { randomInt } from 'node:crypto'

/**
 * Ids and their stamps, hundreds of thousands of them, outside the JavaScript heap: one text buffer and a few
 * typed arrays instead of a Map of strings. A third of the memory, and nothing for the garbage collector to walk.
 */
export interface IdTable {
  readonly size: number
  /** Adds an id, or gives a known one another stamp. False when it was known. Ids must be well-formed Unicode. */
  set(id: string, modified: string): boolean
  /** The id's ordinal, 0 ≤ ordinal < size, in the order they came; undefined when it is not there. */
  get(id: string): number | undefined
  idAt(ordinal: number): string
  modifiedAt(ordinal: number): string
  /** Ids in the order they came. */
  ids(): Generator<string>
}

/** An empty table. `textBytes` is a guess at all ids and stamps together, in UTF-8 bytes. */
export function createIdTable(textBytes: number): IdTable {
  const seed = randomInt(1, 2 ** 32)
  const ids = createTexts(textBytes)
  const stamps = createTexts(textBytes >>> 1)
  let stampOf = new Uint32Array(1024) // ordinal → number of its stamp
  let hashes = new Uint32Array(1024)
  let slots = new Uint32Array(4096) // ordinal + 1; 0 is free

  /** The slot that holds the id, or the free one where it belongs. */
  const slotOf = (id: string, hash: number): number => {
    const mask = slots.length - 1
    for (let slot = hash & mask; ; slot = (slot + 1) & mask) {
      const held = slots[slot] ?? 0
      if (held === 0) return slot
      if (hashes[held - 1] === hash && ids.at(held - 1) === id) return slot
    }
  }
  const grow = (): void => {
    stampOf = doubled(stampOf)
    hashes = doubled(hashes)
    slots = rehashed(hashes, ids.count(), slots.length * 2)
  }

  return {
    get size() {
      return ids.count()
    },
    set(id, modified) {
      const hash = hashOf(id, seed)
      const known = slots[slotOf(id, hash)] ?? 0
      if (known > 0) {
        stampOf[known - 1] = stamps.append(modified)
        return false
      }
      if (ids.count() === hashes.length) grow()
      const ordinal = ids.append(id)
      hashes[ordinal] = hash
      stampOf[ordinal] = stamps.append(modified)
      slots[slotOf(id, hash)] = ordinal + 1
      return true
    },
    get(id) {
      const held = slots[slotOf(id, hashOf(id, seed))] ?? 0
      return held === 0 ? undefined : held - 1
    },
    idAt: ids.at,
    modifiedAt: (ordinal) => stamps.at(stampOf[ordinal] ?? 0),
    *ids() {
      for (let ordinal = 0; ordinal < ids.count(); ordinal++) yield ids.at(ordinal)
    },
  }
}

interface Texts {
  /** The number under which `at` gives the text back; a text equal to the one before shares its number. */
  append: (value: string) => number
  at: (number: number) => string
  count: () => number
}

function createTexts(bytes: number): Texts {
  let text = Buffer.allocUnsafeSlow(Math.max(64, bytes))
  let ends = new Uint32Array(1024)
  let count = 0
  let used = 0
  let last: string | null = null
  const at = (number: number): string =>
    text.toString('utf8', number === 0 ? 0 : ends[number - 1], ends[number])
  return {
    at,
    count: () => count,
    append(value) {
      if (value === last) return count - 1
      last = value
      if (used + value.length * 3 > text.length) text = grown(text, used + value.length * 3)
      used += text.write(value, used)
      if (count === ends.length) ends = doubled(ends)
      ends[count] = used
      return count++
    },
  }
}

function rehashed(hashes: Uint32Array, count: number, length: number): Uint32Array<ArrayBuffer> {
  const slots = new Uint32Array(length)
  for (let ordinal = 0; ordinal < count; ordinal++) {
    let slot = (hashes[ordinal] ?? 0) & (length - 1)
    while (slots[slot] !== 0) slot = (slot + 1) & (length - 1)
    slots[slot] = ordinal + 1
  }
  return slots
}

/** FNV-1a over UTF-16 units from a seed of the table's own, so that nobody can prepare ids that collide. */
function hashOf(value: string, seed: number): number {
  let hash = seed
  for (let at = 0; at < value.length; at++)
    hash = Math.imul(hash ^ value.charCodeAt(at), 0x01000193)
  return (hash ^ (hash >>> 15)) >>> 0
}

function doubled(array: Uint32Array<ArrayBuffer>): Uint32Array<ArrayBuffer> {
  const twice = new Uint32Array(array.length * 2)
  twice.set(array)
  return twice
}

function grown(buffer: Buffer<ArrayBuffer>, atLeast: number): Buffer<ArrayBuffer> {
  const larger = Buffer.allocUnsafeSlow(Math.max(atLeast, buffer.length * 2))
  buffer.copy(larger)
  return larger
}
