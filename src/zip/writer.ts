import { Buffer } from 'node:buffer'
import { createChunker } from './chunker.ts'

/** One member to write: its content's CRC-32 and size in bytes, and the raw deflate stream that holds it. */
export interface ZipMember {
  name: string
  crc32: number
  size: number
  deflated: Uint8Array
}

/** An archive being written; `finish` ends it, and nothing may be added afterwards. */
export interface ZipWriter {
  /** Adds a member; where in the archive its stream begins. */
  add(member: ZipMember): number
  /** Shows to `look` what it has not seen yet: all local headers and streams so far. */
  show(): void
  /**
   * Takes members over from another archive of this writer's, without their bytes: all before them goes to the sink,
   * and whoever calls puts them behind it. For archives under 4 GiB.
   */
  adopt(members: Adopted): void
  /** Writes the central directory and returns the archive's size in bytes and its member count. */
  finish(): { size: number; members: number }
}

/** Neighbouring members of another archive. */
export interface Adopted {
  count: number
  /** Bytes of their local headers and streams. */
  bytes: number
  /** Where these lay in the other archive. */
  from: number
  /** Their entries in its central directory; the offsets in it are changed. */
  entries: Buffer
}

const LOCAL = 30
const CENTRAL = 46
const OFFSET_AT = 42
const DOS_DATE_1980 = 0x21 // 1980-01-01, the earliest a zip can say
const UTF8 = 0x0800
const VERSION = 20
const VERSION_ZIP64 = 45
const ATTRIBUTES = (0o100644 << 16) >>> 0
const MAX32 = 0xffffffff
const MAX16 = 0xffff

/**
 * A deterministic archive: the same members in the same order give the same bytes on any machine
 * (fixed dates, no extra fields, UTF-8 flag only where a name needs it, Zip64 only where a number does).
 * Streams are copied as they come, never recompressed. `sink` receives chunks of about 1 MiB, valid during the call only;
 * `look` sees the same bytes before that, in pieces that end where `show` was called.
 */
export function createZipWriter(
  sink: (chunk: Uint8Array) => void,
  look: (bytes: Uint8Array) => void = () => undefined,
): ZipWriter {
  const body = createChunker(sink, look)
  const pages: Uint8Array[] = []
  const directory = createChunker((page) => pages.push(Buffer.from(page)))
  let members = 0

  const add = (member: ZipMember): number => {
    const fields = fieldsOf(member, body.size())
    body.header(LOCAL + fields.nameLength, (to, at) => {
      writeLocalHeader(to, at, member.name, fields)
    })
    const stream = body.size()
    body.bytes(member.deflated)
    directory.header(CENTRAL + fields.nameLength + fields.extra, (to, at) => {
      writeCentralHeader(to, at, member.name, fields)
    })
    members++
    return stream
  }

  const adopt = ({ count, bytes, from, entries }: Adopted): void => {
    body.flush()
    shiftOffsets(entries, body.size() - from)
    directory.bytes(entries)
    body.skip(bytes)
    members += count
  }

  const finish = (): { size: number; members: number } => {
    const start = body.size()
    body.flush()
    directory.flush()
    for (const page of pages) {
      look(page)
      sink(page)
    }
    body.skip(directory.size())
    body.bytes(endRecords(members, start, body.size() - start))
    body.flush()
    return { size: body.size(), members }
  }

  return { add, show: () => body.show(), adopt, finish }
}

/** Tells where in `entries` of a central directory each member's name lies, in UTF-8. */
export function eachName(entries: Buffer, use: (from: number, to: number) => void): void {
  for (let at = 0; at < entries.length; at = entriesEnd(entries, at, 1)) {
    use(at + CENTRAL, at + CENTRAL + entries.readUInt16LE(at + 28))
  }
}

function shiftOffsets(entries: Buffer, by: number): void {
  if (by === 0) return
  for (let at = 0; at < entries.length; at = entriesEnd(entries, at, 1)) {
    entries.writeUInt32LE(entries.readUInt32LE(at + OFFSET_AT) + by, at + OFFSET_AT)
  }
}

/** Where `count` entries of this writer's central directory end that begin at `at`. Throws `RangeError` over its end. */
export function entriesEnd(directory: Buffer, at: number, count: number): number {
  let end = at
  for (let i = 0; i < count; i++) {
    end += CENTRAL + directory.readUInt16LE(end + 28) + directory.readUInt16LE(end + 30)
  }
  if (end > directory.length) throw new RangeError('a central directory ends within an entry')
  return end
}

interface Fields {
  version: number
  flags: number
  crc32: number
  deflated: number
  size: number
  nameLength: number
  /** Bytes of the central entry's extra field: 12 when the offset needs Zip64. */
  extra: number
  offset: number
}

function fieldsOf({ name, crc32, size, deflated }: ZipMember, offset: number): Fields {
  const nameLength = Buffer.byteLength(name)
  if (nameLength > MAX16) throw new RangeError(`member name of ${nameLength} bytes`)
  if (size >= MAX32 || deflated.length >= MAX32) throw new RangeError(`member over 4 GiB: ${name}`)
  const far = offset >= MAX32
  return {
    version: far ? VERSION_ZIP64 : VERSION,
    flags: nameLength === name.length ? 0 : UTF8,
    crc32,
    deflated: deflated.length,
    size,
    nameLength,
    extra: far ? 12 : 0,
    offset,
  }
}

function writeLocalHeader(to: Buffer, at: number, name: string, fields: Fields): void {
  to.writeUInt32LE(0x04034b50, at)
  writeShared(to, at + 4, fields)
  to.writeUInt16LE(0, at + 28)
  to.write(name, at + LOCAL)
}

function writeCentralHeader(to: Buffer, at: number, name: string, fields: Fields): void {
  const far = fields.extra > 0
  to.fill(0, at, at + CENTRAL)
  to.writeUInt32LE(0x02014b50, at)
  to.writeUInt16LE((3 << 8) | fields.version, at + 4) // made on Unix, so the attributes are a mode
  writeShared(to, at + 6, fields)
  to.writeUInt16LE(fields.extra, at + 30)
  to.writeUInt32LE(ATTRIBUTES, at + 38)
  to.writeUInt32LE(far ? MAX32 : fields.offset, at + 42)
  to.write(name, at + CENTRAL)
  if (!far) return
  const extra = at + CENTRAL + fields.nameLength
  to.writeUInt16LE(1, extra)
  to.writeUInt16LE(8, extra + 2)
  to.writeBigUInt64LE(BigInt(fields.offset), extra + 4)
}

/** The 24 bytes that local header and central directory entry have in common. */
function writeShared(to: Buffer, at: number, fields: Fields): void {
  to.writeUInt16LE(fields.version, at)
  to.writeUInt16LE(fields.flags, at + 2)
  to.writeUInt16LE(8, at + 4)
  to.writeUInt16LE(0, at + 6)
  to.writeUInt16LE(DOS_DATE_1980, at + 8)
  to.writeUInt32LE(fields.crc32, at + 10)
  to.writeUInt32LE(fields.deflated, at + 14)
  to.writeUInt32LE(fields.size, at + 18)
  to.writeUInt16LE(fields.nameLength, at + 22)
}

/** End of central directory, preceded by its Zip64 form when a count or an offset does not fit. */
function endRecords(members: number, start: number, size: number): Buffer {
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
