import { TRANSFER_BYTES, type Chunk, type SendChunk } from '../../../../../base/threads/chunks.ts'
import type { PreparedFolders, PreparedRecord } from './prepared.ts'

/** Bytes of the whole record, of its text, and of upstream's stream; then its digest, text, stream and derived form. */
const NUMBERS = 3 * 4
const HEAD = NUMBERS + 32

type RecordText = [
  ...[id: string, stamp: string, instant: string, malformed: boolean],
  ...[aliases: readonly string[], ecosystems: readonly string[], prefixes: readonly string[]],
  ...[crc32: number, size: number],
  ...[folders: PreparedFolders, derived: DerivedText | null],
]

type DerivedText = [folders: PreparedFolders, crc32: number]

/** Creates a writer that fills chunks for `send`. */
export function createPreparedWriter(send: SendChunk) {
  let chunk: Chunk = new Uint8Array(TRANSFER_BYTES)
  let used = 0
  const renew = async (least: number): Promise<void> => {
    if (used > 0) chunk = await send(chunk.subarray(0, used))
    if (least > chunk.length) chunk = new Uint8Array(least)
    used = 0
  }
  const write = (record: PreparedRecord, text: string): void => {
    used = writeRecord(bufferOf(chunk), used, record, text)
  }
  return {
    /** Adds a record. The result must be awaited before the next call, if there is one. */
    add(record: PreparedRecord): Promise<void> | undefined {
      const text = JSON.stringify(textOf(record))
      const streams = record.own.deflated.length + (record.derived?.content.length ?? 0)
      const most = HEAD + text.length * 3 + streams
      if (used + most > chunk.length) return renew(most).then(() => write(record, text))
      write(record, text)
      return undefined
    },
    /** Sends what is left. */
    async end(): Promise<void> {
      if (used > 0) await send(chunk.subarray(0, used))
    },
  }
}

function textOf(record: PreparedRecord): RecordText {
  const { id, stamp, instant, malformed, aliases, ecosystems, prefixes, own, derived } = record
  return [
    ...([id, stamp, instant, malformed, aliases, ecosystems, prefixes] as const),
    ...([own.crc32, own.size, own.folders, derived && derivedText(derived)] as const),
  ]
}

function derivedText(derived: NonNullable<PreparedRecord['derived']>): DerivedText {
  return [derived.folders, derived.crc32]
}

function writeRecord(to: Buffer, at: number, { sha256, own, derived }: PreparedRecord, text: string): number {
  const textBytes = to.write(text, at + HEAD)
  const start = at + HEAD + textBytes
  to.set(sha256, at + NUMBERS)
  to.set(own.deflated, start)
  let end = start + own.deflated.length
  if (derived !== null) {
    to.set(derived.content, end)
    end += derived.content.length
  }
  to.writeUInt32LE(end - at, at)
  to.writeUInt32LE(textBytes, at + 4)
  to.writeUInt32LE(own.deflated.length, at + 8)
  return end
}

/** Calls `use` with each record of a chunk, in the order in which they were added. Its buffers are views of the chunk. */
export function eachPrepared(chunk: Chunk, use: (record: PreparedRecord) => void): void {
  const bytes = bufferOf(chunk)
  for (let at = 0; at < bytes.length; at += bytes.readUInt32LE(at)) use(readRecord(bytes, at))
}

function readRecord(bytes: Buffer, at: number): PreparedRecord {
  const start = at + HEAD + bytes.readUInt32LE(at + 4)
  const next = start + bytes.readUInt32LE(at + 8)
  const end = at + bytes.readUInt32LE(at)
  const text = JSON.parse(bytes.toString('utf8', at + HEAD, start)) as RecordText
  const [id, stamp, instant, malformed, aliases, ecosystems, prefixes, ...rest] = text
  const [crc32, size, folders, inDerived] = rest
  return {
    id,
    stamp,
    instant,
    malformed,
    aliases,
    ecosystems,
    prefixes,
    sha256: bytes.subarray(at + NUMBERS, at + HEAD),
    own: { folders, crc32, size, deflated: bytes.subarray(start, next) },
    derived: inDerived && readDerived(inDerived, bytes.subarray(next, end)),
  }
}

function readDerived([folders, crc32]: DerivedText, content: Uint8Array): PreparedRecord['derived'] {
  return { folders, crc32, content }
}

function bufferOf({ buffer, byteOffset, byteLength }: Chunk): Buffer {
  return Buffer.from(buffer, byteOffset, byteLength)
}
