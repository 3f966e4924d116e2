import { readSync } from 'node:fs'
import { sha256Hex } from '../base/digest.ts'
import type { StoredPart } from '../store/osv/archive-parts.ts'
import { listMembers } from './zip/entries.ts'
import type { Draft } from './draft.ts'

/** Ids that were written, in the order of the store. */
export type WrittenIds = ReturnType<typeof createWrittenIds>

/** Creates a walk over ids in the order of the store. */
export function createWrittenIds(ids: readonly string[]) {
  const sorted = [...new Set(ids)].map((id) => Buffer.from(id)).sort((a, b) => a.compare(b))
  let at = 0
  return {
    /** Passes over the ids before this one. */
    skipTo(id: string): void {
      this.takeUntil(id, () => undefined)
    },
    /** Calls `use` with each further id before this one; null: with all. */
    takeUntil(id: string | null, use: (written: string) => void): void {
      const end = id === null ? null : Buffer.from(id)
      for (let next = sorted[at]; next !== undefined; next = sorted[++at]) {
        if (end !== null && next.compare(end) >= 0) return
        use(String(next))
      }
    },
    /** Whether the next one is this. */
    isNext: (id: string): boolean => sorted[at]?.equals(Buffer.from(id)) === true,
  }
}

/** A part of the published archive, and the id before which its records end; null: the last part. */
interface PartRange {
  readonly part: StoredPart
  readonly before: string | null
}

/** Where it is: the open file, its directory from the entries of its members on, and its position. */
interface PartPlace {
  readonly source: number
  readonly entries: Buffer
  readonly from: number
}

/** Largest part that is read at once, bytes; they have about 32 members. */
const MOST_BYTES = 1 << 23
const ENDING = '.json'

/**
 * Adds the records of a dirty part: those that were written from the store, the others as they are in the published
 * archive, where they are neighbours. False, and nothing is added, when the part is not as it was published.
 */
export function copyPart(
  draft: Draft,
  { part, before }: PartRange,
  { source, entries, from }: PartPlace,
  written: WrittenIds,
): boolean {
  const bytes = part.bytes > MOST_BYTES ? null : readPart(source, from, part)
  const members = bytes === null ? null : listMembers(entries, part.members)
  if (bytes === null || members === null) return false
  const add = (id: string): void => draft.addStored(id, `${id}\0`)
  written.skipTo(part.first)
  for (const { name, crc32, size, packed, stream } of members) {
    const id = name.slice(0, -ENDING.length)
    written.takeUntil(id, add)
    if (written.isNext(id)) continue // is added before the next one
    const deflated = bytes.subarray(stream - from, stream - from + packed)
    draft.addMember({ id, crc32, size, deflated })
  }
  written.takeUntil(before, add)
  return true
}

/** Returns the bytes of a part; null when they have not its digest. */
function readPart(source: number, from: number, { bytes, sha256 }: StoredPart): Buffer | null {
  const read = Buffer.allocUnsafe(bytes)
  const isRead = readSync(source, read, 0, bytes, from) === bytes
  return isRead && sha256Hex(read) === sha256 ? read : null
}
