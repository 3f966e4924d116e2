import { crc32 } from 'node:zlib'
import { jsonTextOf } from '../json/text.ts'
import { contentOf, sizeOf } from '../store/gzip.ts'
import type { Reads } from '../store/pinned.ts'
import { INDEX } from './paths.ts'

/** What the served index says there is: whether a record that cannot be found is one that should be there. */
export interface Listing {
  /** Throws when the index cannot be read. Always false while the snapshot is not whole. */
  lists(id: string): boolean
  /** Whether upstream's own index lists an id that a partial snapshot may not have; null: that index is not stored. */
  listsUpstream(id: string): boolean | null
  /** Forgets what was read: there is another snapshot. */
  drop(): void
}

/**
 * While the store has as many records as the snapshot counts, what is not stored is not listed: the index is read only
 * where that is not so. Then four bytes an id are kept of it. Nearly every id that is not listed is told by them in a
 * microsecond; one whose sum is there by chance, or that is listed, is looked for in the index itself.
 */
export function createListing(reads: Reads): Listing {
  const served = createIds(() => readIds(reads))
  const upstream = createIds(() => readUpstreamIds(reads))
  return {
    lists: (id) => !isSound(reads, id) && served.has(id) === true,
    listsUpstream: (id) => upstream.has(id),
    drop() {
      served.drop()
      upstream.drop()
    },
  }
}

/** Whether the snapshot has all its records, of which `id` is none. Counting costs milliseconds, reading the index many more. */
function isSound(reads: Reads, id: string): boolean {
  return reads.readEntry(id) === null && reads.countRecords() === reads.readSnapshot('osv')?.records
}

/** Ids of which sums alone are kept; null where there are none to read. */
function createIds(read: () => string[] | null) {
  let sums: Uint32Array | 'none' | null = null
  return {
    has(id: string): boolean | null {
      if (sums === null) {
        const ids = read()
        sums = ids === null ? 'none' : Uint32Array.from(ids, (one) => crc32(one)).sort()
      }
      if (sums === 'none') return null
      return holds(sums, crc32(id)) && read()?.includes(id) === true
    },
    drop() {
      sums = null
    },
  }
}

/** Of upstream's index as it was fetched, which is kept beside a partial snapshot. */
function readUpstreamIds(reads: Reads): string[] | null {
  const body = reads.readUpstreamState(INDEX)?.body ?? null
  if (body === null) return null
  const entries = JSON.parse(jsonTextOf(contentOf(body, sizeOf(body)))) as ({
    id?: unknown
  } | null)[]
  return entries.flatMap((entry) => (typeof entry?.id === 'string' ? [entry.id] : []))
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
