import type { Draft } from '../../archive/draft.ts'
import { freeBytes } from '../../base/free-bytes.ts'
import type { RecordEntry, RecordToStore } from '../../store/osv/reads.ts'
import type { Directory, ZipEntry } from '../../archive/zip/directory.ts'
import type { SyncContext } from '../context.ts'
import type { CheckedMember } from './archive/checked.ts'
import { type ArchiveReading, type Selection, endOfId } from './archive/reading.ts'
import type { OsvRecordGuard } from './guard.ts'
import type { OsvIndex } from './index-parser.ts'
import { compareStamps, createChangedOf } from './record.ts'
import type { UpstreamArchive } from './upstream-archive.ts'

/** What an archive and the index, or the store, disagree about. */
export interface Comparison {
  /** Listed ids that are missing in the archive, rejected, duplicated or older than listed → reason. */
  unresolved: Map<string, string>
  written: number
  /** Number of members whose content differs under an unchanged stamp: changes that the index did not announce. */
  silent: number
  /** Number of members newer than their stamp in the index. */
  newer: number
  /** Number of members older by their own stamp than the record fetched by itself meanwhile; these are skipped. */
  behind: number
  /** Ids of stored records with the listed stamp whose bytes are dated later than the archive, which has other bytes. */
  datedLater: Set<string>
  /** Number of members that the index does not list. */
  unlisted: number
}

/**
 * Where the records of an archive are written: to the staging table, or within the open transaction to a store that
 * is empty (nothing is compared) or not, where the guard sees each record before it replaces another. The derived archive of an empty store is written along with it.
 */
export type IngestTarget =
  { kind: 'staging' } | { kind: 'empty store'; draft: Draft } | { kind: 'store'; guard: OsvRecordGuard }

/** Marks an id that the archive contains more than once. */
const TWICE = 0xffffffff

/** What of its run an ingest needs. */
type IngestContext = Pick<SyncContext, 'store' | 'suspectIds' | 'progress' | 'now'>

interface Ingest {
  context: IngestContext
  index: OsvIndex
  /** Date of the archive, unix milliseconds; null: unknown. */
  asOf: number | null
  target: IngestTarget
  /** Returns the Last-Modified of a record with these stamps, unix seconds. */
  changedOf: (stamps: readonly (string | null)[]) => number
  result: Comparison
}

/**
 * Writes the listed members of an archive that differ from the store: reads the members whose CRC-32 or size differ
 * (all of them into an empty store) and verifies each. Returns what they disagree about.
 */
export async function ingestArchive(
  context: IngestContext,
  index: OsvIndex,
  { reader, path, asOf }: Pick<UpstreamArchive, 'reader' | 'path' | 'asOf'>,
  reading: ArchiveReading,
  target: IngestTarget,
): Promise<Comparison> {
  const counts = { written: 0, silent: 0, newer: 0, behind: 0, unlisted: 0 }
  const result: Comparison = { ...counts, unresolved: new Map(), datedLater: new Set() }
  const now = context.now()
  const ingest = { context, index, asOf, target, changedOf: createChangedOf(asOf ?? now, now), result }
  const report = (done: number, total: number): void =>
    context.progress({ source: 'osv', phase: 'ingest', unit: 'records', done, total })
  try {
    const selection = select(ingest, reader.directory, path !== null)
    const { length } = selection.ordinals
    report(0, length)
    let taken = 0
    await reading.read(selection, (member) => {
      take(ingest, selection.ordinals[taken++] ?? 0, member)
      if (taken % 2048 === 0) report(taken, length)
    })
    if (taken < length) throw new Error('not all members of the archive were read')
    report(taken, taken)
    freeBytes(selection.ordinals)
  } finally {
    await reading.stop()
  }
  return result
}

/**
 * Selects the members to read. Those of a downloaded archive are read in the order of their ids, whatever the archive's:
 * a database is filled several times faster in order, and the derived archive has this order.
 */
function select(ingest: Ingest, directory: Directory, isDownloaded: boolean): Selection {
  const { index, result } = ingest
  const { ids } = index
  const numbers = new Uint32Array(ids.size) // ordinal → number of its member + 1, and `TWICE`
  for (let number = 0; number < directory.count; number++) {
    const name = directory.name(number)
    const end = endOfId(name)
    const ordinal = end === null ? undefined : ids.find(name.bytes, name.from, end)
    if (ordinal === undefined) {
      const { bytes, from } = name
      if (end === null || index.scope?.listed.find(bytes, from, end) === undefined) result.unlisted++
    } else numbers[ordinal] = numbers[ordinal] === 0 ? number + 1 : TWICE
  }
  const wanted = new Uint32Array(ids.size)
  let count = 0
  for (let ordinal = 0; ordinal < numbers.length; ordinal++) {
    const number = numbers[ordinal] ?? 0
    if (number === 0) result.unresolved.set(ids.idAt(ordinal), 'it is missing in the archive')
    else if (number === TWICE)
      // neither copy is trusted
      result.unresolved.set(ids.idAt(ordinal), 'the archive contains it more than once')
    else if (ingest.target.kind === 'empty store') wanted[count++] = ordinal
    else if (wants(ingest, ordinal, directory.entry(number - 1))) wanted[count++] = ordinal
  }
  const numberOf = (ordinal: number): number => (numbers[ordinal] ?? 0) - 1
  const compare = isDownloaded ? ids.compare : (a: number, b: number) => numberOf(a) - numberOf(b)
  const ordinals = sorted(wanted.subarray(0, count), compare)
  const selected = ordinals.map(numberOf)
  freeBytes(numbers)
  return { ordinals, numbers: selected }
}

/** Sorts unless it is sorted already, as nearly always. */
function sorted<T extends Uint32Array>(ordinals: T, compare: (a: number, b: number) => number): T {
  for (let i = 1; i < ordinals.length; i++)
    if (compare(ordinals[i - 1] ?? 0, ordinals[i] ?? 0) > 0) return ordinals.sort(compare)
  return ordinals
}

/** Returns whether a member must be read to be compared with what is stored. */
function wants(ingest: Ingest, ordinal: number, entry: ZipEntry): boolean {
  const { index, result, context } = ingest
  const id = index.ids.idAt(ordinal)
  const stored = context.suspectIds.has(id) ? null : context.store.osv.readEntry(id)
  return stored === null || differs(entry, stored, index.ids.modifiedAt(ordinal), ingest.asOf, result)
}

function take(ingest: Ingest, ordinal: number, member: CheckedMember): void {
  const { index, result, context, target } = ingest
  const id = index.ids.idAt(ordinal)
  if (member.kind === 'refused') {
    result.unresolved.set(id, member.reason)
    return
  }
  const { own } = member
  const listed = index.ids.modifiedAt(ordinal)
  const isUnstamped = index.unstamped.has(id)
  const isDatedLater = result.datedLater.has(id)
  // Its own stamp is the only one; one that is stored was the record's own.
  const order = isUnstamped && !isDatedLater ? 'same' : compareStamps(own, listed)
  if (isDatedLater) {
    if (order === 'older') result.behind++
    else result.unresolved.set(id, 'its bytes in the archive are others, and the stored ones are dated later')
    return
  }
  if (order === 'newer') result.newer++
  const entry = target.kind === 'empty store' ? null : context.store.osv.readEntry(id)
  const stored = entry !== null
  // Stamps can also go backwards, so a differing stamp does not show which is later: the stored record stays until it
  // is requested by itself.
  if (order === 'older' || (order === 'newer' && stored)) {
    result.unresolved.set(id, `the version in the archive is ${order} than listed`)
    // Store it under its own stamp until the listed version is fetched; but never replace a stored record with it.
    if (stored) return
  }
  if (member.kind === 'outside') return index.scope?.leaveOut(id)
  const { crc32, size, sha256, body, bodyCrc32, fix } = member
  const modified = order === 'older' || isUnstamped ? (own ?? listed) : listed
  const sums = { crc32, size, sha256, bodyCrc32 }
  const record = { id, modified, ...sums, body, fix, asOf: ingest.asOf }
  write(ingest, record, own)
  result.written++
  if (entry?.modified === listed) result.silent++
}

/** Writes a record; `own` is the `modified` of the record itself. */
function write({ context, target, changedOf }: Ingest, record: RecordToStore, own: string | null): void {
  const { osv } = context.store
  if (target.kind === 'staging') return osv.staging.stage(record)
  const changed = changedOf([record.modified, own])
  if (target.kind === 'store') {
    target.guard.see(record)
    return osv.updateRecord(record, changed)
  }
  osv.insertRecord(record, changed)
  target.draft.add(record)
}

/** Returns whether a stored record must be read again from the archive, and counts what the difference means. */
function differs(
  entry: ZipEntry,
  stored: RecordEntry,
  listed: string,
  archiveAsOf: number | null,
  result: Comparison,
): boolean {
  const same = entry.crc32 === stored.crc32 && entry.size === stored.size
  if (stored.modified !== listed) {
    if (!same) return true
    result.unresolved.set(stored.id, 'listed as changed, but unchanged in the archive')
    return false
  }
  if (same) return false
  if (stored.asOf !== null && archiveAsOf !== null && stored.asOf > archiveAsOf) {
    result.datedLater.add(stored.id) // its own stamp, which is read next, shows which are the newer ones
    return true
  }
  return true
}
