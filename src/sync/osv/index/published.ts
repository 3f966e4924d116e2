import { isUtf8 } from 'node:buffer'
import { sha256Of } from '../../../base/digest.ts'
import { OSV_INDEX } from '../../../base/domain/feed-paths.ts'
import { contentInPool } from '../../../store/database/gzip.ts'
import type { ContentProof } from '../../../store/runs/snapshots.ts'
import type { SyncContext } from '../../context.ts'
import { createLateIds } from '../id-table.ts'
import { type OsvIndex, beginsPlain, parseIndex } from '../index-parser.ts'
import { isScopeChanged } from '../scope/scope.ts'
import { type IndexDifference, differenceOfIndexes } from './difference.ts'

/** An index that is known by its difference, and the proof that the stored records are the published ones. */
interface ComparedIndex {
  index: OsvIndex
  proof: ContentProof
}

/**
 * Returns whether a fetched index is to be compared with the published one: in a sync only, of a mirror that published
 * everything that the index listed.
 */
export function isComparable(context: SyncContext): boolean {
  const { store, kind, full } = context
  const snapshot = store.snapshots.readSnapshot('osv')
  if (kind !== 'sync' || full || snapshot?.whole !== true) return false
  return snapshot.scope === null && !isScopeChanged(context)
}

/**
 * Returns a fetched index that is comparable by its difference to the published one, without parsing what is equal; the
 * same value as `parseIndex` otherwise. The stored digests must prove that index and records are still the published
 * ones: then the difference between the indexes is the difference to the stored records. Null when it must be parsed.
 */
export async function comparedIndex(context: SyncContext, bytes: Buffer): Promise<ComparedIndex | null> {
  const { store } = context
  const records = store.snapshots.readSnapshot('osv')?.records ?? 0
  if (!isUtf8(bytes) || !beginsPlain(bytes)) return null
  const inflated = readPublished(context) // in the thread pool, while this thread reads the records
  const proof = store.snapshots.proveRecords()
  const published = await inflated
  if (published === null || proof?.records !== records) return null
  const isPublished = (id: string): boolean => store.osv.readEntry(id) !== null
  const found = differenceOfIndexes(bytes, published, records, isPublished)
  return found === null ? null : { index: describe(bytes, found, records), proof }
}

/** Returns the published index; null when its bytes are not those of its digest. */
async function readPublished({ store }: SyncContext): Promise<Buffer | null> {
  const document = store.feeds.readDocument(OSV_INDEX)
  if (document === null || document.body === null) return null
  try {
    const bytes = await contentInPool(document.body, document.size)
    return sha256Of(bytes).equals(document.sha256) ? bytes : null
  } catch {
    return null // damaged; this run writes it again
  }
}

function describe(bytes: Buffer, found: IndexDifference, records: number): OsvIndex {
  const { listed, ...difference } = found
  const size = records + found.added.length - found.removed.length
  return {
    sha256: sha256Of(bytes),
    ids: createLateIds(size, listed, () => parseIndex(bytes).ids),
    difference: { ...difference, stored: records },
    duplicates: 0,
    unusable: 0,
    unnamed: 0,
    skipped: [],
    unstamped: new Set(),
    isList: true,
    scope: null,
  }
}
