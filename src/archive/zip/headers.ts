import { Buffer } from 'node:buffer'

/** The fields of a member's headers: sizes in bytes, method 0 (stored) or 8 (deflated). */
export interface HeaderMember {
  name: string
  method: number
  crc32: number
  size: number
  /** Bytes in the archive. */
  packed: number
}

/** Fields common to both headers of a member, and their lengths. */
export interface HeaderFields extends HeaderMember {
  version: number
  flags: number
  nameLength: number
  /** Position of the local header. */
  offset: number
  /** Whether the sizes need Zip64, and whether the offset does. */
  large: boolean
  far: boolean
  /** Bytes of the complete local header, and of the complete central entry. */
  localBytes: number
  centralBytes: number
}

/** Bytes of a local header before its name. */
const LOCAL = 30
const DOS_DATE_1980 = 0x21 // 1980-01-01, the earliest date of the format
const UTF8 = 0x0800
const VERSION = 20
const VERSION_ZIP64 = 45
const ATTRIBUTES = (0o100644 << 16) >>> 0
const MAX32 = 0xffffffff
const MAX16 = 0xffff

/** Bytes of a central entry before its name. */
export const CENTRAL = 46
/** Position in a central entry of the offset of the local header. */
export const OFFSET_AT = 42

/**
 * Returns the header fields of a member. In this program's archives they depend on the member and its position only:
 * fixed dates, no extra fields except Zip64's, UTF-8 flag only where a name needs it, Zip64 only where a number does.
 * Throws `RangeError` for a name over 64 KiB.
 */
export function headerFields(member: HeaderMember, offset: number): HeaderFields {
  const { name, size, packed } = member
  const nameLength = Buffer.byteLength(name)
  if (nameLength > MAX16) throw new RangeError(`member name of ${nameLength} bytes`)
  const large = size >= MAX32 || packed >= MAX32
  const far = offset >= MAX32
  return {
    ...member,
    version: large || far ? VERSION_ZIP64 : VERSION,
    flags: nameLength === name.length ? 0 : UTF8,
    nameLength,
    offset,
    large,
    far,
    localBytes: LOCAL + nameLength + (large ? 20 : 0),
    centralBytes: CENTRAL + nameLength + extraBytes(large, far),
  }
}

function extraBytes(large: boolean, far: boolean): number {
  const numbers = (large ? 2 : 0) + (far ? 1 : 0)
  return numbers === 0 ? 0 : 4 + 8 * numbers
}

/** Writes `localBytes` bytes at `at`. */
export function writeLocalHeader(to: Buffer, at: number, fields: HeaderFields): void {
  to.writeUInt32LE(0x04034b50, at)
  writeShared(to, at + 4, fields)
  to.writeUInt16LE(fields.large ? 20 : 0, at + 28)
  to.write(fields.name, at + LOCAL)
  if (fields.large) writeExtra(to, at + LOCAL + fields.nameLength, [fields.size, fields.packed])
}

/** Writes `centralBytes` bytes at `at`. */
export function writeCentralHeader(to: Buffer, at: number, fields: HeaderFields): void {
  const { large, far, size, packed, offset } = fields
  to.fill(0, at, at + CENTRAL)
  to.writeUInt32LE(0x02014b50, at)
  to.writeUInt16LE((3 << 8) | fields.version, at + 4) // made on Unix, so the attributes are a mode
  writeShared(to, at + 6, fields)
  to.writeUInt16LE(extraBytes(large, far), at + 30)
  to.writeUInt32LE(ATTRIBUTES, at + 38)
  to.writeUInt32LE(far ? MAX32 : offset, at + OFFSET_AT)
  to.write(fields.name, at + CENTRAL)
  const numbers = [...(large ? [size, packed] : []), ...(far ? [offset] : [])]
  if (numbers.length > 0) writeExtra(to, at + CENTRAL + fields.nameLength, numbers)
}

/** Writes the 24 bytes that the local header and the central directory entry have in common. */
function writeShared(to: Buffer, at: number, fields: HeaderFields): void {
  to.writeUInt16LE(fields.version, at)
  to.writeUInt16LE(fields.flags, at + 2)
  to.writeUInt16LE(fields.method, at + 4)
  to.writeUInt16LE(0, at + 6)
  to.writeUInt16LE(DOS_DATE_1980, at + 8)
  to.writeUInt32LE(fields.crc32, at + 10)
  to.writeUInt32LE(fields.large ? MAX32 : fields.packed, at + 14)
  to.writeUInt32LE(fields.large ? MAX32 : fields.size, at + 18)
  to.writeUInt16LE(fields.nameLength, at + 22)
}

function writeExtra(to: Buffer, at: number, numbers: readonly number[]): void {
  to.writeUInt16LE(1, at)
  to.writeUInt16LE(8 * numbers.length, at + 2)
  for (const [i, number] of numbers.entries()) to.writeBigUInt64LE(BigInt(number), at + 4 + 8 * i)
}

/** Returns the end of central directory, preceded by its Zip64 form when a count or an offset does not fit. */
export function endRecords(members: number, start: number, size: number): Buffer {
  const far = members >= MAX16 || start >= MAX32 || size >= MAX32
  const end = Buffer.alloc(22)
  end.writeUInt32LE(0x06054b50, 0)
  end.writeUInt16LE(far ? MAX16 : members, 8)
  end.writeUInt16LE(far ? MAX16 : members, 10)
  end.writeUInt32LE(far ? MAX32 : size, 12)
  end.writeUInt32LE(far ? MAX32 : start, 16)
  if (!far) return end
  const far64 = Buffer.alloc(76)
  far64.writeUInt32LE(0x06064b50, 0)
  far64.writeBigUInt64LE(44n, 4)
  far64.writeUInt16LE((3 << 8) | VERSION_ZIP64, 12)
  far64.writeUInt16LE(VERSION_ZIP64, 14)
  far64.writeBigUInt64LE(BigInt(members), 24)
  far64.writeBigUInt64LE(BigInt(members), 32)
  far64.writeBigUInt64LE(BigInt(size), 40)
  far64.writeBigUInt64LE(BigInt(start), 48)
  far64.writeUInt32LE(0x07064b50, 56)
  far64.writeBigUInt64LE(BigInt(start + size), 64)
  far64.writeUInt32LE(1, 72)
  return Buffer.concat([far64, end])
}
