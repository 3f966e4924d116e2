import { crc32 } from 'node:zlib'
import { jsonTextOf } from '../json/text.ts'
import { contentOf } from '../store/gzip.ts'
import type { Reads } from '../store/pinned.ts'
import { INDEX } from './paths.ts'

/** What the served index says there is: whether a record that cannot be found is one that should be there. */
export interface Listing {
  /** Throws when the index cannot be read. Always false while the snapshot is not whole. */
  lists(id: string): boolean
  /** Forgets what was read: there is another snapshot. */
  drop(): void
}

/**
 * Reads the index at the first question, and keeps four bytes an id. Nearly every id that is not listed is told by
 * them in a microsecond; one whose sum is there by chance, or that is listed, is looked for in the index itself.
 */
export function createListing(reads: Reads): Listing {
  let sums: Uint32Array | null = null
  return {
    lists(id) {
      sums ??= Uint32Array.from(readIds(reads), (listed) => crc32(listed)).sort()
      return holds(sums, crc32(id)) && readIds(reads).includes(id)
    },
    drop() {
      sums = null
    },
  }
}

function readIds(reads: Reads): string[] {
  if (reads.readSnapshot('osv')?.whole !== true) return []
  const index = reads.readDocument(INDEX)
  if (index === null || index.body === null) return []
  const entries = JSON.parse(jsonTextOf(contentOf(index.body, index.size))) as { id: string }[]
  return entries.map(({ id }) => id)
}

function holds(sorted: Uint32Array, wanted: number): boolean {
  let low = 0
  let high = sorted.length
  while (low < high) {
    const middle = (low + high) >>> 1
    if ((sorted[middle] ?? 0) < wanted) low = middle + 1
    else high = middle
  }
  return sorted[low] === wanted
}
