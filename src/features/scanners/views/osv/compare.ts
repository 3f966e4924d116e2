import type { OsvReader } from '../../../../store/osv/reads.ts'
import type { ViewsWriter } from '../../store/writes.ts'

/** A record that is new, or not as it was in the generation before. */
interface ChangedRecord {
  readonly id: string
  readonly sha256: Buffer
  readonly stamp: string
  /** Its row in the generation before; null for a new record. */
  readonly old: OldRecord | null
}

/** A record of the generation before. */
export interface OldRecord {
  readonly num: number
  readonly id: string
  readonly sha256: Buffer
  readonly stamp: string
}

interface Comparison {
  readonly changed: readonly ChangedRecord[]
  readonly gone: readonly OldRecord[]
  readonly records: number
}

/** What two states of the records are compared by. */
interface CompareOptions {
  readonly reads: Pick<OsvReader, 'countRecords' | 'eachDigest' | 'readEntry' | 'readRecord'>
  readonly views: Pick<ViewsWriter, 'countRecords' | 'eachRecord' | 'readRow'>
  /** The ids that the change log names; null when it does not say which. */
  readonly named: readonly string[] | null
  readonly pause: () => Promise<void>
}

const PAGE = 1000
/** Differences with which an update takes less than a build from the beginning: of so many records one. */
const SHARE = 8

/** Finds the records that differ, in the order of their ids; null when much differs. */
export async function compareRecords(options: CompareOptions): Promise<Comparison | null> {
  const { reads, views, named } = options
  const known = views.countRecords()
  const most = Math.max(PAGE, known / SHARE)
  if (named === null) return compareAll(options, most)
  if (named.length > most) return null
  const found = compareNamed(options, named)
  const added = found.changed.filter(({ old }) => old === null).length
  // Another program may have changed the database.
  const isComplete = known + added - found.gone.length === reads.countRecords()
  return isComplete ? { ...found, records: known + added - found.gone.length } : compareAll(options, most)
}

function compareNamed({ reads, views }: CompareOptions, named: readonly string[]) {
  const changed: ChangedRecord[] = []
  const gone: OldRecord[] = []
  for (const id of named) {
    const old = toOld(views.readRow(id))
    const stamp = reads.readEntry(id)?.modified
    if (stamp === undefined) {
      if (old !== null) gone.push(old)
      continue
    }
    const stored = reads.readRecord(id)
    if (stored === null) throw new Error(`the bytes of record ${id} are lost`)
    const { sha256 } = stored
    if (old?.stamp === stamp && old.sha256.equals(sha256)) continue
    changed.push({ id, sha256, stamp, old })
  }
  return { changed, gone }
}

type Row = ReturnType<ViewsWriter['readRow']>

function toOld(row: Row): OldRecord | null {
  if (row === null) return null
  const [num, id, sha256, stamp] = row
  return { num, id, sha256, stamp }
}

/** Walks the stored records and those of the generation. */
async function compareAll({ reads, views, pause }: CompareOptions, most: number): Promise<Comparison | null> {
  const changed: ChangedRecord[] = []
  const gone: OldRecord[] = []
  const known = views.eachRecord()
  const take = (): OldRecord | null => {
    const next = known.next()
    return toOld(next.done === true ? null : next.value)
  }
  try {
    let next = take()
    let records = 0
    for (const [id, sha256, stamp] of reads.eachDigest()) {
      if (++records % PAGE === 0) await pause()
      for (; next !== null && isBefore(next.id, id); next = take()) gone.push(next)
      const old = next?.id === id ? next : null
      if (old !== null) next = take()
      if (old?.stamp === stamp && old.sha256.equals(sha256)) continue
      changed.push({ id, sha256, stamp, old })
      if (changed.length + gone.length > most) return null
    }
    for (; next !== null; next = take()) gone.push(next)
    return changed.length + gone.length > most ? null : { changed, gone, records }
  } finally {
    known.return?.()
  }
}

/** Compares ids as the database orders them. */
function isBefore(one: string, other: string): boolean {
  return one !== other && Buffer.compare(Buffer.from(one), Buffer.from(other)) < 0
}
