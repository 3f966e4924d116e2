import { closeSync, openSync } from 'node:fs'
import { join } from 'node:path'
import { systemCode } from '../core/errors.ts'
import type { OsvReader } from '../store/osv/reads.ts'
import type { StoredPart } from '../store/osv/archive-parts.ts'
import { entriesEnd, eachName } from '../zip/writer.ts'
import { type BuiltArchive, type Draft, createDraft, unlisted } from './writer.ts'
import { readTail } from './check.ts'
import { bytesOfParts } from './parts.ts'

/** Largest archive that is patched, bytes: one near 4 GiB may need Zip64 offsets, which patching does not support. */
const MAX_BYTES = 0x7fffffff
const ENDING = '.json'

/** Decides which ids may be in the archive: `get` for a string, `find` for the UTF-8 bytes of an id in a buffer. */
export interface Expected {
  get: (id: string) => boolean
  find: (bytes: Buffer, from: number, to: number) => boolean
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
): Promise<BuiltArchive | null> {
  const info = store.readArchive()
  const parts = mergeHeadlessParts(store, store.listParts())
  const dirty = parts.filter((part) => part.dirty).length
  if (info === null || dirty > parts.length / 3 || info.size > MAX_BYTES) return null
  const source = openPublished(join(dir, info.file))
  if (source === null) return null
  try {
    const tail = readTail(source, info, parts)
    if (tail === null) return null
    const draft = createDraft(store, dir, expected.get)
    try {
      patch(draft, parts, { source, tail }, expected)
      return await draft.finish()
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
    if (systemCode(error) === 'ENOENT') return null
    throw error
  }
}

/** Marks the preceding part dirty when a part's first record was removed: the rest of the part is merged into it. */
function mergeHeadlessParts(store: OsvReader, parts: StoredPart[]): StoredPart[] {
  for (let i = parts.length - 1; i > 0; i--) {
    const [part, before] = [parts[i], parts[i - 1]]
    if (part?.dirty === true && before !== undefined && store.readEntry(part.first) === null)
      before.dirty = true
  }
  return parts
}

interface Published {
  source: number
  /** Its central directory and end records. */
  tail: Buffer
}

function patch(
  draft: Draft,
  parts: readonly StoredPart[],
  { source, tail }: Published,
  expected: Expected,
): void {
  let entry = 0
  let from = 0
  const runs = runsOf(parts)
  for (const [i, run] of runs.entries()) {
    const count = run.reduce((sum, { members }) => sum + members, 0)
    const bytes = bytesOfParts(run)
    const end = entriesEnd(tail, entry, count)
    const [first] = run
    if (first?.dirty === true) {
      draft.write(first.first, runs[i + 1]?.[0]?.first ?? null)
    } else {
      const entries = tail.subarray(entry, end)
      eachName(entries, (start, end) => {
        const idEnd = end - ENDING.length
        if (!expected.find(entries, start, idEnd))
          throw unlisted(entries.toString('utf8', start, idEnd))
      })
      draft.adopt(run, { count, bytes, from, entries }, source)
    }
    entry = end
    from += bytes
  }
}

/** Groups consecutive parts that are all dirty or all clean. */
function runsOf(parts: readonly StoredPart[]): StoredPart[][] {
  const runs: StoredPart[][] = []
  for (const part of parts) {
    const last = runs.at(-1)
    if (last?.[0]?.dirty === part.dirty) last.push(part)
    else runs.push([part])
  }
  return runs
}
