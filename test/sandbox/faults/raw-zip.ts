import { isAscii } from 'node:buffer'
import { crc32, deflateRawSync } from 'node:zlib'

/** A member as its headers shall describe it, true or not. */
export interface RawMember {
  name: string | Buffer
  /** The bytes between its headers, as they are. */
  data: Buffer
  method: number
  crc32: number
  /** Declared sizes. */
  size: number
  compressedSize: number
  flags?: number
  /** Name, method and size in the local header, where they shall differ from the central directory's. */
  localName?: string
  localMethod?: number
  localSize?: number
  /** Sizes and CRC follow the data instead of standing in the local header. */
  descriptor?: boolean
  /** Unix mode for the external attributes; default 0o100644. */
  mode?: number
  /** No local header and data of its own: it points at this earlier member's. */
  sharesDataOf?: number
  /** The central directory's offset, where it shall be wrong. */
  offset?: number
}

/** How the archive around the members shall be. */
export interface RawArchive {
  /** Bytes before the first local header; offsets count from the archive's true start only if `shifted`. */
  prefix?: Buffer
  shifted?: boolean
  comment?: Buffer
  /** The member count the end record claims. */
  count?: number
}

/** A member that is as it should be. */
export function soundMember(name: string, content: Buffer | string): RawMember {
  const bytes = Buffer.from(content)
  const data = deflateRawSync(bytes, { level: 6 })
  const sizes = { size: bytes.length, compressedSize: data.length }
  return { name, data, method: 8, crc32: crc32(bytes), ...sizes }
}

/** Writes exactly the given members, valid or not; Zip64 end records when there are too many members. */
export function writeRawZip(members: readonly RawMember[], archive: RawArchive = {}): Buffer {
  const prefix = archive.prefix ?? Buffer.alloc(0)
  const base = archive.shifted === false ? prefix.length : 0
  const parts: Buffer[] = [prefix]
  const offsets: number[] = []
  let at = prefix.length
  for (const member of members) {
    const shared = member.sharesDataOf === undefined ? undefined : offsets[member.sharesDataOf]
    offsets.push(shared ?? at)
    if (shared !== undefined) continue
    for (const part of localParts(member)) {
      parts.push(part)
      at += part.length
    }
  }
  const central = members.map((member, i) => centralHeader(member, member.offset ?? (offsets[i] ?? 0) - base))
  const size = central.reduce((sum, part) => sum + part.length, 0)
  const comment = archive.comment ?? Buffer.alloc(0)
  const end = endRecords(archive.count ?? members.length, at - base, size, at, comment)
  return Buffer.concat([...parts, ...central, end])
}

function localParts(member: RawMember): Buffer[] {
  const name = Buffer.from(member.localName ?? member.name)
  const header = Buffer.alloc(30)
  header.writeUInt32LE(0x04034b50, 0)
  header.writeUInt16LE(20, 4)
  const later = member.descriptor === true
  writeFields(header, 6, member, {
    method: member.localMethod ?? member.method,
    crc32: later ? 0 : member.crc32,
    compressedSize: later ? 0 : member.compressedSize,
    size: later ? 0 : (member.localSize ?? member.size),
  })
  header.writeUInt16LE(name.length, 26)
  if (!later) return [header, name, member.data]
  const descriptor = Buffer.alloc(16)
  descriptor.writeUInt32LE(0x08074b50, 0)
  descriptor.writeUInt32LE(member.crc32, 4)
  descriptor.writeUInt32LE(member.compressedSize, 8)
  descriptor.writeUInt32LE(member.size, 12)
  return [header, name, member.data, descriptor]
}

function centralHeader(member: RawMember, offset: number): Buffer {
  const name = Buffer.from(member.name)
  const header = Buffer.alloc(46 + name.length)
  header.writeUInt32LE(0x02014b50, 0)
  header.writeUInt16LE((3 << 8) | 20, 4)
  header.writeUInt16LE(20, 6)
  writeFields(header, 8, member, member)
  header.writeUInt16LE(name.length, 28)
  header.writeUInt32LE(((member.mode ?? 0o100644) << 16) >>> 0, 38)
  header.writeUInt32LE(offset, 42)
  name.copy(header, 46)
  return header
}

type Fields = Pick<RawMember, 'method' | 'crc32' | 'compressedSize' | 'size'>

/** Flags, method, date, CRC and sizes: the 20 bytes that both headers have in this order. */
function writeFields(header: Buffer, at: number, member: RawMember, fields: Fields): void {
  const utf8 = typeof member.name !== 'string' || isAscii(Buffer.from(member.name)) ? 0 : 0x0800
  header.writeUInt16LE((member.flags ?? 0) | utf8 | (member.descriptor === true ? 8 : 0), at)
  header.writeUInt16LE(fields.method, at + 2)
  header.writeUInt16LE(0x21, at + 6) // 1980-01-01
  header.writeUInt32LE(fields.crc32, at + 8)
  header.writeUInt32LE(fields.compressedSize, at + 12)
  header.writeUInt32LE(fields.size, at + 16)
}

function endRecords(count: number, start: number, size: number, position: number, comment: Buffer): Buffer {
  const end = Buffer.alloc(22)
  const far = count >= 0xffff
  end.writeUInt32LE(0x06054b50, 0)
  end.writeUInt16LE(far ? 0xffff : count, 8)
  end.writeUInt16LE(far ? 0xffff : count, 10)
  end.writeUInt32LE(far ? 0xffffffff : size, 12)
  end.writeUInt32LE(far ? 0xffffffff : start, 16)
  end.writeUInt16LE(comment.length, 20)
  if (!far) return Buffer.concat([end, comment])
  const record = Buffer.alloc(56)
  record.writeUInt32LE(0x06064b50, 0)
  record.writeBigUInt64LE(44n, 4)
  record.writeUInt16LE(45, 12)
  record.writeUInt16LE(45, 14)
  for (const at of [24, 32]) record.writeBigUInt64LE(BigInt(count), at)
  record.writeBigUInt64LE(BigInt(size), 40)
  record.writeBigUInt64LE(BigInt(start), 48)
  const locator = Buffer.alloc(20)
  locator.writeUInt32LE(0x07064b50, 0)
  locator.writeBigUInt64LE(BigInt(position + size), 8)
  locator.writeUInt32LE(1, 16)
  return Buffer.concat([record, locator, end, comment])
}
