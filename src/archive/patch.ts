import { closeSync, openSync } from 'node:fs'
import { join } from 'node:path'
import { systemCode } from '../base/errors.ts'
import type { OsvReader } from '../store/osv/reads.ts'
import type { StoredPart } from '../store/osv/archive-parts.ts'
import { eachName, shiftEntries } from './zip/entries.ts'
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
  let entry = 0
  let from = 0
  for (const [i, run] of runs.entries()) {
    const { dirty, parts, count, bytes } = run
    const entries = tail.subarray(entry)
    if (dirty) entry += writeRun(draft, run, entries, runs[i + 1])
    else {
      if (expected.find !== null) checkNames(entries, count, expected.find)
      entry += draft.adopt(parts, { count, bytes, from, entries }, source)
    }
    from += bytes
  }
}

/** Writes a run of dirty parts from the store; returns the bytes of their entries in the published archive. */
function writeRun(draft: Draft, { first, count }: PartRun, entries: Buffer, next: PartRun | undefined): number {
  draft.begin(first)
  draft.addStored(first, next?.first ?? null)
  draft.end()
  return shiftEntries(entries, count, 0)
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
