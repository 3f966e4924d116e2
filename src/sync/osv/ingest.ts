import { MirrorError } from '../../core/errors.ts'
import type { RecordEntry, RecordToStore } from '../../store/osv/reads.ts'
import type { ZipEntry } from '../../zip/directory.ts'
import type { Content, ZipFault } from '../../zip/member.ts'
import type { SyncContext } from '../context.ts'
import { type FetchResult, fetchContradicted } from './fetch-records.ts'
import type { OsvIndex } from './index-parser.ts'
import { compareStamps, fromArchive, identify, recordChanged } from './record.ts'
import { isLeftOut } from './scope/scope.ts'
import type { UpstreamArchive } from './upstream-archive.ts'

/** What an archive and the index, or the store, disagree about. */
interface Comparison {
  /** Listed ids that are missing in the archive, rejected, duplicated or older than listed → reason. */
  unresolved: Map<string, string>
  written: number
  /** Number of members whose content differs under an unchanged stamp: changes that the index did not announce. */
  silent: number
  /** Number of members newer than their stamp in the index. */
  newer: number
  /** Number of members older than the record fetched by itself meanwhile; these are skipped. */
  behind: number
  /** Number of members that the index does not list. */
  unlisted: number
}

/**
 * Where the records of an archive are written: to the staging table, or within the open transaction to a store that
 * is empty (nothing is compared) or not.
 */
type IngestTarget = 'staging' | 'empty store' | 'store'

/** The end of an ingest. */
interface IngestedRecords {
  /** Whether the archive has no record that differs, and lacks none. */
  agrees: boolean
  /** The records that the archive contradicts, fetched one by one. */
  result: FetchResult
}

interface Ingest {
  context: SyncContext
  index: OsvIndex
  /** Date of the archive, unix milliseconds; null: unknown. */
  asOf: number | null
  target: IngestTarget
  /** Start of the ingest, unix milliseconds. */
  now: number
  taken: Uint8Array
  result: Comparison
}

const ENDING = '.json'

/**
 * Writes the listed members of an archive that differ from the store: reads the members whose CRC-32 or size differ
 * (all of them into an empty store) and verifies each. Then releases the archive, and fetches into the staging table
 * the listed records that it contradicts.
 */
export async function ingestArchive(
  context: SyncContext,
  index: OsvIndex,
  { reader, asOf, dispose }: UpstreamArchive,
  target: IngestTarget,
): Promise<IngestedRecords> {
  const result: Comparison = {
    unresolved: new Map(),
    written: 0,
    silent: 0,
    newer: 0,
    behind: 0,
    unlisted: 0,
  }
  const taken = new Uint8Array(index.ids.size)
  const ingest: Ingest = { context, index, asOf, target, now: context.now(), taken, result }
  const total = reader.directory.count
  let compared = 0
  const isWanted = (entry: ZipEntry): boolean => {
    if (++compared % 2048 === 0) report(context, compared, total)
    return wants(ingest, entry)
  }
  await reader.readMembers(isWanted, (entry, member) => {
    take(ingest, entry, member)
  })
  report(context, total, total)
  for (let ordinal = 0; ordinal < taken.length; ordinal++) {
    if (taken[ordinal] === 0)
      result.unresolved.set(index.ids.idAt(ordinal), 'it is missing in the archive')
  }
  recordComparison(context, result)
  await dispose() // a downloaded archive's directory is large, and publishing needs the memory
  const agrees = result.written === 0 && result.unresolved.size === 0
  return { agrees, result: await fetchContradicted(context, index, [...result.unresolved.keys()]) }
}

function recordComparison({ facts }: SyncContext, result: Comparison): void {
  const { silent, newer, behind, unlisted, unresolved } = result
  facts['silentChanges'] = silent
  facts['contradicted'] = unresolved.size
  if (newer > 0) facts['newerThanListed'] = newer
  if (behind > 0) facts['archiveBehind'] = behind
  if (unlisted > 0) facts['unlistedMembers'] = unlisted
  facts['contradictions'] = [...unresolved].slice(0, 5).map(([id, why]) => `${id}: ${why}`)
}

function wants(ingest: Ingest, entry: ZipEntry): boolean {
  const { index, taken, result, context, target } = ingest
  const id = idOf(entry)
  const ordinal = id === null ? undefined : index.ids.get(id)
  if (id === null || ordinal === undefined) {
    if (id === null || index.scope?.listed.get(id) === undefined) result.unlisted++
    return false
  }
  if (taken[ordinal] === 1) {
    result.unresolved.set(id, 'the archive contains it more than once')
    return false
  }
  taken[ordinal] = 1
  const compares = target !== 'empty store' && !context.suspectIds.has(id)
  const stored = compares ? context.store.osv.readEntry(id) : null
  return (
    stored === null || differs(entry, stored, index.ids.modifiedAt(ordinal), ingest.asOf, result)
  )
}

function take(ingest: Ingest, entry: ZipEntry, member: Content | ZipFault): void {
  const { index, result, context, target } = ingest
  const id = idOf(entry) ?? ''
  if (result.unresolved.has(id)) return // duplicated within one archive: neither copy is trusted
  if ('refused' in member) {
    result.unresolved.set(id, member.refused)
    return
  }
  // Archive members are compressed: a reflected credential can only be found here, after inflation.
  const fault = secretIn(context, member.content, id)
  if (fault !== null) {
    result.unresolved.set(id, fault)
    return
  }
  const identity = identify(member.content, id)
  if (typeof identity === 'string') {
    result.unresolved.set(id, identity)
    return
  }
  const listed = index.ids.stamp(id)
  const order = compareStamps(identity.modified, listed)
  if (order === 'newer') result.newer++
  const stored = target !== 'empty store' && context.store.osv.readEntry(id) !== null
  // Stamps can also go backwards, so a differing stamp does not show which is later: the stored record stays until it
  // is requested by itself.
  if (order === 'older' || (order === 'newer' && stored)) {
    result.unresolved.set(id, `the version in the archive is ${order} than listed`)
    // Store it under its own stamp until the listed version is fetched; but never replace a stored record with it.
    if (stored) return
  }
  if (isLeftOut(index, id, identity.record)) return
  const stamp = order === 'older' ? (identity.modified ?? listed) : listed
  const record = fromArchive(id, stamp, { ...member, crc32: entry.crc32 }, ingest.asOf)
  write(ingest, record, identity.modified)
  result.written++
}

/** Writes a record; `own` is the `modified` of the record itself. */
function write(
  { context, target, asOf, now }: Ingest,
  record: RecordToStore,
  own: string | null,
): void {
  const { osv } = context.store
  if (target === 'staging') return osv.staging.stage(record)
  const changed = recordChanged(asOf ?? now, now, [record.modified, own])
  if (target === 'empty store') osv.insertRecord(record, changed)
  else osv.updateRecord(record, changed)
}

function secretIn({ session }: SyncContext, content: Buffer, id: string): string | null {
  try {
    session.checkSecrets(content, id)
    return null
  } catch (error) {
    if (!(error instanceof MirrorError)) throw error
    return error.message
  }
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
    result.behind++
    return false
  }
  result.silent++
  return true
}

function idOf(entry: ZipEntry): string | null {
  return entry.name.endsWith(ENDING) ? entry.name.slice(0, -ENDING.length) : null
}

function report(context: SyncContext, done: number, total: number): void {
  context.progress({ source: 'osv', phase: 'ingest', unit: 'records', done, total })
}
