import { crc32 as crc32Of } from 'node:zlib'
import { FRAME } from '../../../../base/gzip/member.ts'
import type { RecordToStore } from '../../../../store/osv/reads.ts'
import type { RecordValue } from '../../../../store/replication/rows.ts'
import type { Chunk } from '../../../../base/threads/chunks.ts'

/** Positions of a record's fields in a chunk: bytes of the whole, of its id and of its stamp; then its numbers and digest. */
const AT = {
  id: 4,
  modified: 8,
  crc32: 12,
  size: 16,
  bodyCrc32: 20,
  changed: 24,
  asOf: 32,
  sha256: 40,
  fix: 72,
} as const
const HEAD = 76
/** Whether a content names a fix, by its number in a chunk. */
const FIXES = [undefined, false, true] as const

function namedFix(fix: boolean | undefined): Pick<RecordToStore, 'fix'> {
  return fix === undefined ? {} : { fix }
}

/** Returns the bytes that a record has in a chunk; `packed`: those of its deflate stream. */
export function bytesInChunk({ key, modified }: RecordValue, packed: number): number {
  return HEAD + Buffer.byteLength(key) + Buffer.byteLength(modified) + packed + FRAME
}

/**
 * Writes a record with its gzip member at a position of a chunk, which must have room. `fix`: whether its content names a
 * fix; undefined: not examined. Returns its end.
 */
export function writeInChunk(
  to: Buffer,
  at: number,
  value: RecordValue,
  member: Buffer,
  fix: boolean | undefined,
): number {
  const idBytes = to.write(value.key, at + HEAD)
  const stampBytes = to.write(value.modified, at + HEAD + idBytes)
  const start = at + HEAD + idBytes + stampBytes
  to.set(member, start)
  to.writeUInt32LE(start + member.length - at, at)
  to.writeUInt32LE(idBytes, at + AT.id)
  to.writeUInt32LE(stampBytes, at + AT.modified)
  to.writeUInt32LE(value.crc32, at + AT.crc32)
  to.writeUInt32LE(value.size, at + AT.size)
  to.writeUInt32LE(crc32Of(member), at + AT.bodyCrc32)
  to.writeDoubleLE(value.changed, at + AT.changed)
  to.writeDoubleLE(value.asOf ?? Number.NaN, at + AT.asOf)
  to.write(value.sha256, at + AT.sha256, 'hex')
  to.writeUInt32LE(FIXES.indexOf(fix), at + AT.fix)
  return start + member.length
}

/** Calls `use` with each record of a chunk and its Last-Modified, Unix seconds. Its buffers are views of the chunk. */
export function eachInChunk(chunk: Chunk, use: (record: RecordToStore, changed: number) => void): void {
  const bytes = Buffer.from(chunk.buffer, chunk.byteOffset, chunk.byteLength)
  for (let at = 0; at < bytes.length;) {
    const end = at + bytes.readUInt32LE(at)
    const stampAt = at + HEAD + bytes.readUInt32LE(at + AT.id)
    const bodyAt = stampAt + bytes.readUInt32LE(at + AT.modified)
    const asOf = bytes.readDoubleLE(at + AT.asOf)
    const record = {
      id: bytes.toString('utf8', at + HEAD, stampAt),
      modified: bytes.toString('utf8', stampAt, bodyAt),
      crc32: bytes.readUInt32LE(at + AT.crc32),
      size: bytes.readUInt32LE(at + AT.size),
      sha256: bytes.subarray(at + AT.sha256, at + AT.fix),
      ...namedFix(FIXES[bytes.readUInt32LE(at + AT.fix)]),
      body: bytes.subarray(bodyAt, end),
      bodyCrc32: bytes.readUInt32LE(at + AT.bodyCrc32),
      asOf: Number.isNaN(asOf) ? null : asOf,
    }
    use(record, bytes.readDoubleLE(at + AT.changed))
    at = end
  }
}
