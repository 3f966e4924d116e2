import { crc32, inflateRawSync } from 'node:zlib'
import { messageOf, systemCode } from '../../base/errors.ts'
import { deflate } from '../../base/gzip/member.ts'
import type { ZipEntry } from './directory.ts'

/** A member's content and its raw deflate stream; both are views, valid until the next member is read. */
export interface Content {
  content: Buffer
  deflated: Buffer
}

/** Why one member cannot be used; the other members of the archive still can. */
export interface ZipFault {
  refused: string
}

const LOCAL = 30
const ENCRYPTED = 0x0001 | 0x0040 | 0x2000
const STORED = 0
const DEFLATED = 8

/**
 * Reads and verifies one member: local header, name, method, size, CRC-32. `region` begins at the local header and ends
 * before the next member's or the central directory. Never inflates more than the declared size, and refuses a declared
 * size over `maxSize` without reading it.
 */
export function readMember(entry: ZipEntry, region: Buffer, maxSize: number): Content | ZipFault {
  const packed = packedBytes(entry, region, maxSize)
  if ('refused' in packed) return packed
  if (isStored(entry)) {
    if (crc32(packed) !== entry.crc32) return { refused: 'CRC-32 differs' }
    return { content: packed, deflated: deflate(packed) }
  }
  return verifyDeflated(entry, packed)
}

/** Inflates the stream of a member, and compares what it inflates to with the member's size and CRC-32. */
export function verifyDeflated({ crc32: sum, size }: ZipEntry, deflated: Buffer): Content | ZipFault {
  const content = inflate(deflated, size)
  if (typeof content === 'string') return { refused: content }
  if (crc32(content) !== sum) return { refused: 'CRC-32 differs' }
  return { content, deflated }
}

/** Returns a member's bytes as they are in `region`, a view. Checks the local header as `readMember` does, not the content. */
export function packedBytes(entry: ZipEntry, region: Buffer, maxSize: number): Buffer | ZipFault {
  const fault = faultOf(entry, region, maxSize)
  if (fault !== null) return { refused: fault }
  const start = LOCAL + region.readUInt16LE(26) + region.readUInt16LE(28)
  const packed = region.subarray(start, start + entry.compressedSize)
  return packed.length < entry.compressedSize ? { refused: 'its data run over the next member' } : packed
}

/** Reports whether a member is not compressed. */
export function isStored({ method }: ZipEntry): boolean {
  return method === STORED
}

function faultOf(entry: ZipEntry, region: Buffer, maxSize: number): string | null {
  if (!entry.safeName) return 'its name is not a safe relative path'
  if (entry.flags & ENCRYPTED) return 'it is encrypted'
  if (entry.method !== STORED && entry.method !== DEFLATED) return `compression method ${entry.method}`
  if (entry.size > maxSize) return `${entry.size} bytes are over the cap of ${maxSize}`
  if (entry.method === STORED && entry.size !== entry.compressedSize) return 'stored sizes differ'
  if (region.length < LOCAL || region.readUInt32LE(0) !== 0x04034b50) return 'no local header where it should be'
  if (region.readUInt16LE(8) !== entry.method) return 'local header names another method'
  const nameEnd = LOCAL + region.readUInt16LE(26)
  if (region.toString('utf8', LOCAL, nameEnd) !== entry.name) return 'local header names another member'
  return null
}

function inflate(packed: Buffer, size: number): Buffer | string {
  try {
    // One output buffer of the declared size: the default of one 16 KB buffer per record is slow.
    // `info` returns how many bytes the stream used: trailing ones would corrupt the gzip member built around it.
    const { buffer, engine } = inflateRawSync(packed, {
      chunkSize: Math.max(64, size + 16),
      maxOutputLength: Math.max(1, size),
      info: true,
    }) as unknown as { buffer: Buffer; engine: { bytesWritten: number } } // not in the typings
    if (buffer.length !== size) return `inflates to ${buffer.length} bytes instead of ${size}`
    if (engine.bytesWritten !== packed.length) return 'has bytes after its deflate stream'
    return buffer
  } catch (error) {
    if (systemCode(error) === 'ERR_BUFFER_TOO_LARGE') return `inflates to more than its ${size} bytes`
    return `does not inflate: ${messageOf(error)}`
  }
}
