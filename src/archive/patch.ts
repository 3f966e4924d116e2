import { closeSync, openSync, readSync } from 'node:fs'
import { join } from 'node:path'
import { systemCode } from '../base/errors.ts'
import type { OsvReader } from '../store/osv/reads.ts'
import type { StoredPart } from '../store/osv/archive-parts.ts'
import { sha256Hex } from '../base/digest.ts'
import { eachName, listMembers, shiftEntries } from './zip/entries.ts'
import { type BuiltArchive, type Draft, type Meanwhile, createDraft, unlisted } from './draft.ts'
import { readTail } from './check.ts'

/** Largest archive that is patched, bytes: one near 4 GiB may need Zip64 offsets, which patching does not support. */
const MAX_BYTES = 0x7fffffff
const ENDING = '.json'

/**
 * Decides which ids may be in the archive: `get` for a string, `find` for the UTF-8 bytes of an id in a buffer; null when
 * the members of unchanged parts need not be checked, because they are proved to be expected.
 */
export interface Expected {
  get: (id: string) => boolean
  find: ((bytes: Buffer, from: number, to: number) => boolean) | null
  /** Every id that was written since the archive was published, perhaps among others; null: they are not known. */
  written: readonly string[] | null
}

/**
 * Builds the same bytes as `buildArchive`, but copies from the published file the parts of which no record was written
 * since. Returns null when that is not possible or not worth it: no such file, a file that differs from the published
 * one, or more than a third of the parts to write.
 */
export async function patchArchive(
  store: OsvReader,
  dir: string,
  expected: Expected,
  meanwhile?: Meanwhile,
): Promise<BuiltArchive | null> {
  const info = store.readArchive()
  const parts = mergeHeadlessParts(store, store.listParts())
  const dirty = parts.filter((part) => part.dirty).length
  if (info === null || dirty > parts.length / 3 || info.size > MAX_BYTES) return null
  const source = openPublished(join(dir, info.file))
  if (source === null) return null
  try {
    const runs = runsOf(parts)
    const tail = readTail(source, info, parts)
    if (tail === null) return null
    const draft = createDraft(store, dir, expected.get)
    try {
      patch(draft, runs, { source, tail }, expected)
      return await draft.finish(meanwhile)
    } finally {
      draft.close()
    }
  } finally {
    closeSync(source)
  }
}

function openPublished(path: string): number | null {
  try {
    return openSync(path, 'r')
  } catch (error) {
    if (['ENOENT', 'EACCES'].includes(systemCode(error) ?? '')) return null
    throw error
  }
}

/** Marks the preceding part dirty when a part's first record was removed: the rest of the part is merged into it. */
function mergeHeadlessParts(store: OsvReader, parts: StoredPart[]): StoredPart[] {
  for (let i = parts.length - 1; i > 0; i--) {
    const part = parts[i]
    const before = parts[i - 1]
    if (part?.dirty === true && before !== undefined && store.readEntry(part.first) === null) before.dirty = true
  }
  return parts
}

interface Published {
  source: number
  /** Its central directory and end records. */
  tail: Buffer
}

function patch(draft: Draft, runs: readonly PartRun[], { source, tail }: Published, expected: Expected): void {
  const written = expected.written === null ? null : createWrittenIds(expected.written)
  let entry = 0
  let from = 0
  for (const [i, run] of runs.entries()) {
    const { dirty, parts, count, bytes } = run
    const entries = tail.subarray(entry)
    if (dirty) entry += writeRun(draft, run, { source, entries, from, written }, runs[i + 1])
    else {
      if (expected.find !== null) checkNames(entries, count, expected.find)
      entry += draft.adopt(parts, { count, bytes, from, entries }, source)
    }
    from += bytes
  }
}

/** Where the dirty parts of a run are in the published archive, and its directory from their entries on. */
interface RunPlace {
  readonly source: number
  readonly entries: Buffer
  readonly from: number
  readonly written: WrittenIds | null
}

/** Writes a run of dirty parts; returns the bytes of their entries in the published archive. */
function writeRun(
  draft: Draft,
  { first, parts }: PartRun,
  { source, entries, from, written }: RunPlace,
  next: PartRun | undefined,
): number {
  let entry = 0
  let at = from
  draft.begin(first)
  for (const [i, part] of parts.entries()) {
    const range = { part, before: parts[i + 1]?.first ?? next?.first ?? null }
    const place = { source, entries: entries.subarray(entry), from: at }
    const isCopied = written !== null && copyPart(draft, range, place, written)
    if (!isCopied) draft.addStored(part.first, range.before)
    entry += shiftEntries(place.entries, part.members, 0)
    at += part.bytes
  }
  draft.end()
  return entry
}

function checkNames(entries: Buffer, count: number, find: NonNullable<Expected['find']>): void {
  eachName(entries, count, (start, end) => {
    const idEnd = end - ENDING.length
    if (!find(entries, start, idEnd)) throw unlisted(entries.toString('utf8', start, idEnd))
  })
}

/** Consecutive parts that are all dirty or all clean. */
interface PartRun {
  dirty: boolean
  /** The first id of the first part. */
  first: string
  parts: StoredPart[]
  /** Members of all parts. */
  count: number
  /** Bytes of all parts in the published archive. */
  bytes: number
}

function runsOf(parts: readonly StoredPart[]): PartRun[] {
  const runs: PartRun[] = []
  for (const part of parts) {
    const { dirty, first, members, bytes } = part
    const last = runs.at(-1)
    if (last?.dirty === dirty) {
      last.parts.push(part)
      last.count += members
      last.bytes += bytes
    } else runs.push({ dirty, first, parts: [part], count: members, bytes })
  }
  return runs
}

/** Ids that were written, in the order of the store. */
type WrittenIds = ReturnType<typeof createWrittenIds>

/** Creates a walk over ids in the order of the store. */
function createWrittenIds(ids: readonly string[]) {
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

/**
 * Adds the records of a dirty part: those that were written from the store, the others as they are in the published
 * archive, where they are neighbours. False, and nothing is added, when the part is not as it was published.
 */
function copyPart(
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
