import { crc32 as crc32Of } from 'node:zlib'
import { FRAME, writeGzipMember } from '../../../base/gzip/member.ts'
import type { Chunk, SendChunk } from '../../../base/threads/chunks.ts'

/** A member that cannot be stored. */
interface RefusedMember {
  readonly kind: 'refused'
  readonly reason: string
}

/** What was found of a record. */
interface RecordFacts {
  readonly kind: 'record' | 'outside'
  /** The record's own `modified`; null: it has none. */
  readonly own: string | null
  /** Of the content. */
  readonly crc32: number
  readonly size: number
  readonly sha256: Buffer
  /** Whether the content names a fix. */
  readonly fix: boolean
}

/** A member to write into a chunk, with its raw deflate stream. */
export type MemberToWrite = RefusedMember | (RecordFacts & { readonly deflated: Uint8Array })

/** A member read from a chunk, with its gzip member. Buffers are views into the chunk. */
export type CheckedMember = RefusedMember | (RecordFacts & { readonly body: Buffer; readonly bodyCrc32: number })

const KINDS = ['refused', 'record', 'outside'] as const
/** Total bytes, kind, bytes of the text (`NONE`: there is none), CRC-32, size, CRC-32 of the gzip member, whether it names a fix. */
const NUMBERS = 7 * 4
const SHA256 = 32
const HEAD = NUMBERS + SHA256
const NONE = 0xffffffff

/** Creates a writer that fills `first`, and then the chunks that `send` resolves with. */
export function createCheckedWriter(first: Chunk, send: SendChunk) {
  let chunk = first
  let bytes = bufferOf(first)
  let used = 0
  const renew = async (least: number): Promise<void> => {
    if (used > 0) chunk = await send(chunk.subarray(0, used))
    if (least > chunk.length) chunk = new Uint8Array(least)
    bytes = bufferOf(chunk)
    used = 0
  }
  const write = (member: MemberToWrite, text: string | null): void => {
    const at = used
    const textBytes = text === null ? 0 : bytes.write(text, at + HEAD)
    const start = at + HEAD + textBytes
    used = member.kind === 'refused' ? start : writeRecord(bytes, at, start, member)
    bytes.writeUInt32LE(used - at, at)
    bytes.writeUInt32LE(KINDS.indexOf(member.kind), at + 4)
    bytes.writeUInt32LE(text === null ? NONE : textBytes, at + 8)
  }
  return {
    /** Adds a member. The result must be awaited before the next call, if there is one. */
    add(member: MemberToWrite): Promise<void> | undefined {
      const text = member.kind === 'refused' ? member.reason : member.own
      const body = member.kind === 'refused' ? 0 : member.deflated.length + FRAME
      const most = HEAD + (text?.length ?? 0) * 3 + body
      if (used + most > chunk.length) return renew(most).then(() => write(member, text))
      write(member, text)
      return undefined
    },
    /** Sends what was added. */
    flush: (): Promise<void> => (used === 0 ? Promise.resolve() : renew(0)),
  }
}

function writeRecord(
  bytes: Buffer,
  at: number,
  start: number,
  { deflated, crc32, size, sha256, fix }: Exclude<MemberToWrite, RefusedMember>,
): number {
  const end = writeGzipMember(bytes, start, deflated, crc32, size)
  bytes.writeUInt32LE(crc32, at + 12)
  bytes.writeUInt32LE(size, at + 16)
  bytes.writeUInt32LE(crc32Of(bytes.subarray(start, end)), at + 20)
  bytes.writeUInt32LE(Number(fix), at + 24)
  bytes.set(sha256, at + NUMBERS)
  return end
}

/** Calls `use` with each member of a chunk, in the order in which they were added. Returns how many there are. */
export function eachChecked(chunk: Uint8Array, use: (member: CheckedMember) => void): number {
  const bytes = bufferOf(chunk)
  let count = 0
  for (let at = 0; at < bytes.length; at += bytes.readUInt32LE(at)) {
    use(readChecked(bytes, at))
    count++
  }
  return count
}

function readChecked(bytes: Buffer, at: number): CheckedMember {
  const end = at + bytes.readUInt32LE(at)
  const kind = KINDS[bytes.readUInt32LE(at + 4)] ?? 'refused'
  const textBytes = bytes.readUInt32LE(at + 8)
  const start = at + HEAD + (textBytes === NONE ? 0 : textBytes)
  const text = textBytes === NONE ? null : bytes.toString('utf8', at + HEAD, start)
  if (kind === 'refused') return { kind, reason: text ?? '' }
  return {
    kind,
    own: text,
    crc32: bytes.readUInt32LE(at + 12),
    size: bytes.readUInt32LE(at + 16),
    bodyCrc32: bytes.readUInt32LE(at + 20),
    fix: bytes.readUInt32LE(at + 24) === 1,
    sha256: bytes.subarray(at + NUMBERS, at + HEAD),
    body: bytes.subarray(start, end),
  }
}

function bufferOf({ buffer, byteOffset, byteLength }: Uint8Array): Buffer {
  return Buffer.from(buffer, byteOffset, byteLength)
}
