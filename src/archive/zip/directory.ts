import { isUtf8 } from 'node:buffer'
import { MirrorError } from '../../base/errors.ts'
import { type DirectoryBytes, entryBytes } from './directory-bytes.ts'
import { freeBytes } from '../../base/free-bytes.ts'
import { CENTRAL } from './headers.ts'

/** One member as the central directory describes it. Sizes and offsets in bytes. */
export interface ZipEntry {
  name: string
  /** The name is not empty, its exact bytes are valid UTF-8, it is relative, and free of `..`, NUL and backslashes. */
  safeName: boolean
  flags: number
  method: number
  crc32: number
  compressedSize: number
  size: number
  /** Position of the local header in the archive. */
  offset: number
}

/** Position of the central directory, from the end record. */
export interface DirectoryLocation {
  offset: number
  size: number
  count: number
}

/** A member's name as bytes, from `from` to `to` (exclusive); they need not be UTF-8. */
export interface MemberName {
  bytes: Buffer
  from: number
  to: number
}

/** A parsed central directory. */
export interface Directory {
  readonly count: number
  /** Returns the i-th entry in the order of the local headers, 0 ≤ i < count. */
  entry(i: number): ZipEntry
  /** Returns the name of the i-th member, valid until the next call, without making an entry. */
  name(i: number): MemberName
  /** Returns the position of the i-th member's local header, without making an entry. */
  offset(i: number): number
  /** Returns the bytes of the i-th member's stream, without making an entry. */
  compressedSize(i: number): number
  /** Frees its memory at once; it cannot be used any more. */
  free(): void
  /** Returns the first byte after the i-th member's region: the next local header or the central directory. */
  regionEnd(i: number): number
}

const END = 22
const END64_LOCATOR = 20
const END64 = 56
const MAX16 = 0xffff
const MAX32 = 0xffffffff

/** Bytes at an archive's end that always contain every end record (comment included). */
export const END_SPAN = END + MAX16 + END64_LOCATOR + END64

function bad(message: string): MirrorError {
  return new MirrorError('archive', message)
}

/**
 * Finds the central directory from the archive's last bytes. `tail` begins at `archiveSize - tail.length`. Throws
 * `archive` if there is no valid end record.
 */
export function locateDirectory(tail: Buffer, archiveSize: number): DirectoryLocation {
  const tailStart = archiveSize - tail.length
  const at = findEnd(tail)
  if (at < 0) throw bad('no end-of-central-directory record: not a zip, or cut short')
  let count = tail.readUInt16LE(at + 10)
  let size = tail.readUInt32LE(at + 12)
  let offset = tail.readUInt32LE(at + 16)
  let end = tailStart + at
  const locator = at - END64_LOCATOR
  const far = locator >= 0 && tail.readUInt32LE(locator) === 0x07064b50
  if (far) {
    const record = Number(tail.readBigUInt64LE(locator + 8)) - tailStart
    if (record < 0 || record + END64 > locator || tail.readUInt32LE(record) !== 0x06064b50) {
      throw bad('the Zip64 end record is not where its locator says')
    }
    count = Number(tail.readBigUInt64LE(record + 32))
    size = Number(tail.readBigUInt64LE(record + 40))
    offset = Number(tail.readBigUInt64LE(record + 48))
    end = tailStart + record
  } else if (count === MAX16 || size === MAX32 || offset === MAX32) {
    throw bad('the end record requires Zip64 but there is no Zip64 end record')
  }
  if (offset + size !== end) throw bad('the central directory does not end where its end record begins')
  if (count * CENTRAL > size) throw bad(`a central directory of ${size} bytes cannot contain ${count} entries`)
  return { offset, size, count }
}

function findEnd(tail: Buffer): number {
  for (let at = tail.length - END; at >= 0; at--) {
    at = tail.lastIndexOf('PK\x05\x06', at, 'latin1')
    if (at < 0) return -1
    if (at + END + tail.readUInt16LE(at + 20) === tail.length) return at
  }
  return -1
}

/**
 * Indexes a central directory without an object per member: two numbers each, beside what `directory` has in memory. Throws `archive` when entries run over the end, point outside the archive or overlap
 * each other.
 */
export function parseDirectory(directory: DirectoryBytes, location: DirectoryLocation): Directory {
  const { count } = location
  const positions = new Uint32Array(count)
  const offsets = location.offset <= MAX32 ? new Uint32Array(count) : new Float64Array(count)
  let position = 0
  for (let i = 0; i < count; i++) {
    const isWhole = position + CENTRAL <= directory.size
    const at = isWhole ? directory.at(position) : 0
    const bytes = directory.bytes()
    if (!isWhole || bytes.readUInt32LE(at) !== 0x02014b50)
      throw bad(`central directory entry ${i + 1} of ${count} is damaged`)
    positions[i] = position
    const offset = far(bytes, at, 'offset')
    if (offset > location.offset) throw overlap(bytes, at)
    offsets[i] = offset
    position += entryBytes(bytes, at)
  }
  if (position !== directory.size) throw bad('the central directory has bytes after its last entry')
  const order = orderByOffset(offsets)
  const positionOf = (i: number): number => positions[order === null ? i : (order[i] ?? 0)] ?? 0
  const offsetOf = (i: number): number => offsets[order === null ? i : (order[i] ?? 0)] ?? 0
  const regionEnd = (i: number): number => (i + 1 < count ? offsetOf(i + 1) : location.offset)
  for (let i = 0; i < count; i++) {
    const at = directory.at(positionOf(i))
    const bytes = directory.bytes()
    const least = 30 + bytes.readUInt16LE(at + 28) + far(bytes, at, 'compressedSize')
    if (offsetOf(i) + least > regionEnd(i)) throw overlap(bytes, at)
  }
  return {
    count,
    regionEnd,
    entry(i) {
      const at = directory.at(positionOf(i))
      return readEntry(directory.bytes(), at, offsetOf(i))
    },
    name(i) {
      const at = directory.at(positionOf(i))
      const bytes = directory.bytes()
      const from = at + CENTRAL
      return { bytes, from, to: from + bytes.readUInt16LE(at + 28) }
    },
    offset: offsetOf,
    compressedSize(i) {
      const at = directory.at(positionOf(i))
      return far(directory.bytes(), at, 'compressedSize')
    },
    free() {
      directory.free()
      for (const numbers of [positions, offsets]) freeBytes(numbers)
    },
  }
}

/** Returns the error for a member whose bytes run into the next one or the directory. */
function overlap(bytes: Buffer, at: number): MirrorError {
  return bad(`member ${JSON.stringify(nameAt(bytes, at))} overlaps what follows it`)
}

/** Returns the order of the offsets; null if they are ascending already, as in nearly all archives. */
function orderByOffset(offsets: Uint32Array | Float64Array): Uint32Array | null {
  let ascending = true
  for (let i = 1; i < offsets.length && ascending; i++) ascending = (offsets[i] ?? 0) >= (offsets[i - 1] ?? 0)
  if (ascending) return null
  return Uint32Array.from(offsets.keys()).sort((a, b) => (offsets[a] ?? 0) - (offsets[b] ?? 0))
}

function readEntry(bytes: Buffer, at: number, offset: number): ZipEntry {
  const name = nameAt(bytes, at)
  return {
    name,
    safeName: isSafe(name) && isExact(bytes, at, name),
    flags: bytes.readUInt16LE(at + 8),
    method: bytes.readUInt16LE(at + 10),
    crc32: bytes.readUInt32LE(at + 16),
    compressedSize: far(bytes, at, 'compressedSize'),
    size: far(bytes, at, 'size'),
    offset,
  }
}

function nameAt(bytes: Buffer, at: number): string {
  return bytes.toString('utf8', at + CENTRAL, at + CENTRAL + bytes.readUInt16LE(at + 28))
}

function isSafe(name: string): boolean {
  if (name === '') return false
  if (/[\0\\]/.test(name) || name.startsWith('/') || /^[A-Za-z]:\//.test(name)) return false
  return !name.split('/').includes('..')
}

/** Reports whether a name equals its bytes: invalid UTF-8 is decoded as U+FFFD, which a name may also contain. */
function isExact(bytes: Buffer, at: number, name: string): boolean {
  if (!name.includes('\ufffd')) return true
  const start = at + CENTRAL
  return isUtf8(bytes.subarray(start, start + bytes.readUInt16LE(at + 28)))
}

const FIELD_AT = { size: 24, compressedSize: 20, offset: 42 } as const

/**
 * Returns a 32-bit field, or its 64-bit form from the Zip64 extra field (which has, in this order, only those needed).
 */
function far(bytes: Buffer, at: number, field: keyof typeof FIELD_AT): number {
  const near = bytes.readUInt32LE(at + FIELD_AT[field])
  if (near !== MAX32) return near
  let extra = at + CENTRAL + bytes.readUInt16LE(at + 28)
  let end = Math.min(extra + bytes.readUInt16LE(at + 30), bytes.length)
  while (extra + 4 <= end && bytes.readUInt16LE(extra) !== 1) extra += 4 + bytes.readUInt16LE(extra + 2)
  let value = extra + 4
  if (value <= end) end = Math.min(end, value + bytes.readUInt16LE(extra + 2))
  for (const name of ['size', 'compressedSize', 'offset'] as const) {
    if (name === field) break
    if (bytes.readUInt32LE(at + FIELD_AT[name]) === MAX32) value += 8
  }
  if (value + 8 > end) throw bad('a Zip64 entry has no 64-bit numbers')
  return Number(bytes.readBigUInt64LE(value))
}
