import { toIso } from '../../base/time.ts'
import type { SourceName } from '../../base/domain/sources.ts'
import { doubtSummaries } from '../../base/domain/doubts.ts'
import { type LeftReads, type LeftRecords, leftRecords } from './left.ts'
import type { LoggedSnapshot } from './log.ts'
import type { ChangeKind } from './tracker.ts'

/** A changed name in a message: an OSV record by its `id`, anything else by its `path`. */
type ChangedName = { change: ChangeKind } & ({ id: string } | { path: string })

/** A published snapshot as reported to followers. Times in ISO 8601 UTC. */
export interface ChangeMessage {
  source: SourceName
  snapshot: string
  previous: string | null
  sequence: number
  publishedAt: string
  asOf: string
  records: number
  /** Numbers added, changed and removed; null when `complete` is false. */
  counts: { added: number; changed: number; removed: number } | null
  /** Of the removed records those that are not known to be removed upstream, and why they left this mirror; missing: none. */
  left?: LeftRecords
  /** It lacks some of what upstream listed when it was made; missing: that is not known of it. */
  partial?: true
  /** Of `changes`, not of the snapshot. False: everything may have changed, and no names are given. */
  complete: boolean
  /** The first names; `more`: there are further ones, at /-/changes?since=PREVIOUS. */
  changes: ChangedName[]
  more: boolean
  /** What the guard doubted of it and was published all the same, in words; missing: nothing. */
  doubts?: string[]
}

/** Maximum number of names in one message: it announces, it does not transfer. */
const ANNOUNCED_NAMES = 100

/** Builds the message for a row of the change log. */
export function announce(reads: LeftReads, row: LoggedSnapshot): ChangeMessage {
  const { id, source, snapshot, previous, sequence, publishedAt, asOf, records, complete } = row
  const { added, changed, removed } = row
  const counted = added !== null && changed !== null && removed !== null
  const names = reads.changes.listNames(id, ANNOUNCED_NAMES)
  const doubted = reads.changes.readDoubts(id)
  const left = leftRecords(reads, row)
  const doubts = doubted === null ? [] : doubtSummaries(doubted)
  return {
    source,
    snapshot,
    previous,
    sequence,
    publishedAt: toIso(publishedAt),
    asOf: toIso(asOf),
    records,
    counts: counted ? { added, changed, removed } : null,
    ...(left !== null && { left }),
    ...(isPartial(reads, row) && { partial: true }),
    complete,
    changes: names.map(({ name, change }) => toChangedName(source, name, change)),
    more: counted && added + changed + removed > names.length,
    ...(doubts.length > 0 && { doubts }),
  }
}

function isPartial({ snapshots, runs }: LeftReads, { source, snapshot }: LoggedSnapshot): boolean {
  const stored = snapshots.readSnapshot(source)
  return stored?.id === snapshot ? !stored.whole : runs.readLatestWith(source, snapshot)?.state === 'partial'
}

/** Returns a changed name with the member that identifies its kind. */
export function toChangedName(source: SourceName, name: string, change: ChangeKind): ChangedName {
  return source === 'osv' ? { id: name, change } : { path: name, change }
}
