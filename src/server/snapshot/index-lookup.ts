import { contentInPool } from '../../store/database/gzip.ts'
import type { Reads } from '../../store/reads.ts'
import { type FormEntry, readIndexForm } from '../../base/json/forms/index-forms.ts'
import { jsonTextOf } from '../../base/json/objects.ts'
import { elementsInSteps, elementsOf, membersOf, sliceText } from '../../base/json/slices.ts'
import { OSV_INDEX } from '../../base/domain/feed-paths.ts'
import { type Steps, STEP, inSteps } from './steps.ts'

/** Looks ids up in the stored index: shows whether a record that cannot be found should exist. */
export interface IndexLookup {
  /** Rejects when the served index cannot be read. Always false while the snapshot is not whole. */
  lists(id: string): Promise<boolean>
  /** Discards what was read: another snapshot is served. */
  drop(): void
}

/**
 * While the store has as many records around an id as the archive has there, what is not stored is not listed: the index is
 * read only where that is not so, once, beside the serving thread and in short stretches.
 */
export function createListing(reads: Reads): IndexLookup {
  let lost: Promise<ReadonlySet<string>> | null = null
  const lists = async (id: string): Promise<boolean> => {
    if (reads.osv.readEntry(id) !== null || isSound(reads, id)) return false
    const mine = (lost ??= readLost(reads))
    const ids = await mine
    return lost === mine ? ids.has(id) : lists(id) // another snapshot is served by now
  }
  return {
    lists,
    drop() {
      lost = null
    },
  }
}

/** Reports whether the stored records around this id are complete, so the index need not be read. */
function isSound(reads: Reads, id: string): boolean {
  const snapshot = reads.snapshots.readSnapshot('osv')
  if (snapshot?.whole !== true) return true
  return reads.osv.isPartStored(id) ?? reads.osv.countRecords() === snapshot.records
}

async function readLost(reads: Reads): Promise<ReadonlySet<string>> {
  const index = reads.feeds.readDocument(OSV_INDEX)
  if (index === null || index.body === null) return new Set()
  const text = await contentInPool(index.body, index.size)
  const entries = otherForm(text)
  if (entries === null) return inSteps(lostIn(reads, text))
  return new Set(entries.map(({ id }) => id).filter((id) => reads.osv.readEntry(id) === null))
}

/** Returns the entries of an index that is no list of objects with an id; null: it is one, as nearly always. */
function otherForm(text: Buffer): readonly FormEntry[] | null {
  const [first] = elementsOf(text, 0)
  if (first !== undefined && idOf(text, first.start) !== null) return null
  const read = readIndexForm(jsonTextOf(text))
  return read === null || 'refused' in read ? null : read
}

function* lostIn(reads: Reads, text: Buffer): Steps<ReadonlySet<string>> {
  const lost = new Set<string>()
  let count = 0
  for (const entry of elementsInSteps(text, 0)) {
    if (++count % STEP === 0) yield
    if (entry === undefined) continue
    const id = idOf(text, entry.start)
    if (id !== null && reads.osv.readEntry(id) === null) lost.add(id)
  }
  return lost
}

/** The id of an entry of the index; of members that repeat the name the last counts, as for a parser. */
function idOf(text: Buffer, at: number): string | null {
  let id: unknown = null
  for (const { name, value } of membersOf(text, at)) if (name === 'id') id = JSON.parse(sliceText(text, value))
  return typeof id === 'string' ? id : null
}
