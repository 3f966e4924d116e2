import { sha256Hex } from '../../../../base/digest.ts'
import { namesFix } from '../../../../base/domain/named-fix.ts'
import { freeBytes } from '../../../../base/free-bytes.ts'
import { FRAME, inflateMembers, writeGzipMember } from '../../../../base/gzip/member.ts'
import type { RecordValue } from '../../../../store/replication/rows.ts'
import { TRANSFER_BYTES, type SendChunk } from '../../../../base/threads/chunks.ts'
import { isStored, packedBytes } from '../../../../archive/zip/member.ts'
import type { Manifest } from '../../format/manifest.ts'
import type { Contents } from '../members.ts'
import type { BundleExcerpt } from '../open.ts'
import { eachLine } from '../rows.ts'
import { bytesInChunk, writeInChunk } from './layout.ts'
import {
  ARCHIVE_LIMITS,
  type RecordMember,
  type RecordSource,
  createRecordMembers,
  readRecord,
  refused,
} from './members.ts'

/** Content of a batch that is inflated at once, bytes; one record may have more. */
const MOST_CONTENT = 1 << 21

/**
 * Reads the records of a bundle, rows and archive together, verifies that the bytes of each are those that its row
 * names, and sends them in chunks (`eachInChunk`). Returns how many they are. Throws `bundle`.
 */
export async function sendRecords(
  bundle: Pick<Contents, 'read' | 'source'> & Pick<BundleExcerpt, 'manifest'>,
  send: SendChunk,
): Promise<number> {
  const archive = createRecordMembers(bundle)
  const batch = createBatch(bundle.manifest)
  let chunk = new Uint8Array(TRANSFER_BYTES)
  const flush = async (): Promise<void> => {
    const bytes = batch.bytes()
    if (bytes > chunk.length) chunk = new Uint8Array(bytes)
    await refuseWrong(bundle, batch.writeTo(Buffer.from(chunk.buffer)))
    chunk = await send(chunk.subarray(0, bytes))
  }
  let records = 0
  for await (const { put } of eachLine(bundle, 'osv', 'osv-record')) {
    if (put === null) continue
    const member = await archive.find(put.key)
    if (!batch.hasRoom(put.value, member)) await flush()
    batch.add(put.value, member)
    records++
  }
  if (batch.bytes() > 0) await flush()
  return records
}

/** Reads records again, each by itself, and throws `bundle` with the fault of the first that has one. */
async function refuseWrong(bundle: RecordSource, wrong: readonly RecordValue[]): Promise<void> {
  const archive = createRecordMembers(bundle)
  for (const value of wrong) readRecord(bundle.manifest, value, await archive.find(value.key))
}

type Kind = Pick<Manifest, 'kind'>

/** Gathers records that are verified together: as gzip members, one after the other. */
function createBatch(manifest: Kind) {
  let members = Buffer.allocUnsafe(TRANSFER_BYTES)
  let values: RecordValue[] = []
  let ends: number[] = []
  let bytes = 0
  let content = 0
  return {
    /** Bytes in a chunk. */
    bytes: (): number => bytes,
    /** Whether a record fits; into an empty batch, any does. */
    hasRoom(value: RecordValue, { entry }: RecordMember): boolean {
      const isFull =
        bytes + bytesInChunk(value, entry.compressedSize) > TRANSFER_BYTES || content + value.size > MOST_CONTENT
      return values.length === 0 || !isFull
    },
    /** Adds a record; its member is valid during the call. Throws `bundle`. */
    add(value: RecordValue, member: RecordMember): void {
      const deflated = deflatedBytes(manifest, value, member)
      const at = ends.at(-1) ?? 0
      const end = at + deflated.length + FRAME
      if (end > members.length) members = withRoom(members, at, end)
      writeGzipMember(members, at, deflated, value.crc32, value.size)
      const { crc32, size } = member.entry
      if (crc32 !== value.crc32 || size !== value.size) readRecord(manifest, value, member)
      values.push(value)
      ends.push(end)
      bytes += bytesInChunk(value, deflated.length)
      content += value.size
    },
    /** Writes the records to a chunk and forgets them. Returns those whose bytes are not what their rows say. */
    writeTo(to: Buffer): RecordValue[] {
      const { wrong, fixes } = verifyAll(values, members.subarray(0, ends.at(-1) ?? 0), ends)
      let at = 0
      for (const [i, value] of values.entries())
        at = writeInChunk(to, at, value, members.subarray(ends[i - 1] ?? 0, ends[i]), fixes[i])
      if (members.length > TRANSFER_BYTES) members = Buffer.allocUnsafe(TRANSFER_BYTES)
      values = []
      ends = []
      bytes = 0
      content = 0
      return wrong
    },
  }
}

function withRoom(members: Buffer<ArrayBuffer>, used: number, bytes: number): Buffer<ArrayBuffer> {
  const larger = Buffer.allocUnsafe(bytes)
  members.copy(larger, 0, 0, used)
  return larger
}

function deflatedBytes(manifest: Kind, value: RecordValue, member: RecordMember): Buffer {
  const { entry, region } = member
  if (isStored(entry)) return readRecord(manifest, value, member).deflated
  const packed = packedBytes(entry, region, ARCHIVE_LIMITS.maxMemberBytes)
  if ('refused' in packed) throw refused(manifest, value.key, packed.refused)
  return packed
}

/**
 * Verifies all records at once. Returns those that are not what their rows say, and which name a fix; all records and no
 * fixes where that is not known, and each must be read by itself.
 */
function verifyAll(
  values: RecordValue[],
  members: Buffer,
  ends: readonly number[],
): { wrong: RecordValue[]; fixes: boolean[] } {
  const contents = inflateMembers(members, ends)
  if (contents === null) return { wrong: values, fixes: [] }
  const fixes: boolean[] = []
  let at = 0
  const wrong = values.filter((value) => {
    const bytes = contents.subarray(at, (at += value.size))
    fixes.push(namesFix(bytes))
    return sha256Hex(bytes) !== value.sha256
  })
  freeBytes(contents)
  return { wrong, fixes }
}
