import { FRAME, deflatedOf, inflateMembers, writeGzipMember } from '../../base/gzip/member.ts'
import type { ZipEntry } from './directory.ts'
import { freeBytes } from '../../base/free-bytes.ts'
import { type Content, type ZipFault, isStored, packedBytes, verifyDeflated } from './member.ts'

/** A member with its verified content, or with the reason for its refusal. */
export type Verified = readonly [entry: ZipEntry, member: Content | ZipFault]

/** Members that are inflated together, which takes less time than one by one. */
interface Batch {
  /** Adds a member; its region is valid during the call. False: it does not fit, or cannot be verified with others. */
  add(entry: ZipEntry, region: Buffer): boolean
  /** Verifies the members and forgets them; in their order. Their views are valid until the next one is taken. */
  take(): Generator<Verified>
  /** Frees its memory at once. */
  free(): void
}

/** Bytes of the streams, and of the contents, of one batch. */
const MOST_STREAMS = 1 << 18
const MOST_CONTENT = 1 << 20
/** Members of one batch, refused ones included: an archive may have millions that are refused. */
const MOST_MEMBERS = 1 << 14

/** Creates an empty batch of members of at most `maxSize` bytes, each verified as `readMember` verifies it. */
export function createBatch(maxSize: number): Batch {
  let streams: Buffer | null = null
  let added: { entry: ZipEntry; fault: ZipFault | null }[] = []
  let ends: number[] = []
  let size = 0
  return {
    add(entry, region) {
      if (added.length >= MOST_MEMBERS) return false
      const packed = packedBytes(entry, region, maxSize)
      if ('refused' in packed) {
        added.push({ entry, fault: packed })
        return true
      }
      const at = ends.at(-1) ?? 0
      const isFull = at + packed.length + FRAME > MOST_STREAMS || size + entry.size > MOST_CONTENT
      if (isFull || isStored(entry)) return false
      streams ??= Buffer.allocUnsafeSlow(MOST_STREAMS)
      ends.push(writeGzipMember(streams, at, packed, entry.crc32, entry.size))
      size += entry.size
      added.push({ entry, fault: null })
      return true
    },
    *take() {
      const members = streams?.subarray(0, ends.at(-1) ?? 0)
      const taken = { added, ends }
      added = []
      ends = []
      size = 0
      yield* verified(taken.added, taken.ends, members ?? Buffer.alloc(0))
    },
    free() {
      if (streams !== null) freeBytes(streams)
      streams = null
    },
  }
}

function* verified(
  added: readonly { entry: ZipEntry; fault: ZipFault | null }[],
  ends: readonly number[],
  members: Buffer,
): Generator<Verified> {
  const contents = ends.length > 1 ? inflateMembers(members, ends) : null
  let number = 0
  let at = 0
  for (const { entry, fault } of added) {
    if (fault !== null) {
      yield [entry, fault]
      continue
    }
    const deflated = deflatedOf(members.subarray(ends[number - 1] ?? 0, ends[number]))
    number++
    const content = contents?.subarray(at, (at += entry.size))
    yield [entry, content === undefined ? verifyDeflated(entry, deflated) : { content, deflated }]
  }
  if (contents !== null) freeBytes(contents)
}
