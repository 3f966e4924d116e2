import { MirrorError } from '../../core/errors.ts'
import type { RecordEntry, RecordToStore } from '../../store/osv/reads.ts'
import type { ZipEntry } from '../../zip/directory.ts'
import type { Content, ZipFault } from '../../zip/member.ts'
import type { ArchiveReader } from '../../zip/reader.ts'
import type { SyncContext } from '../context.ts'
import { type OsvIndex, listedStamp } from './index-parser.ts'
import { compareStamps, fromArchive, identify } from './record.ts'

/** Result of ingesting an archive. */
export interface IngestResult {
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

/** The archive's date and the target of its records. */
interface IngestInto {
  /** Date of the archive, unix milliseconds; null: unknown. */
  asOf: number | null
  /** Whether the store is empty, so that nothing is compared. */
  empty: boolean
  /** Stores a record; `own` is the `modified` of the record itself. */
  put(record: RecordToStore, own: string | null): void
}

interface Ingest extends IngestInto {
  context: SyncContext
  index: OsvIndex
  taken: Uint8Array
  result: IngestResult
}

const ENDING = '.json'

/**
 * Stores the listed members of an archive that differ from the store: reads the members whose CRC-32 or size differ
 * (all of them the first time), verifies each and passes it to `put`.
 */
export async function ingestArchive(
  context: SyncContext,
  index: OsvIndex,
  reader: ArchiveReader,
  into: IngestInto,
): Promise<IngestResult> {
  const result: IngestResult = {
    unresolved: new Map(),
    written: 0,
    silent: 0,
    newer: 0,
    behind: 0,
    unlisted: 0,
  }
  const taken = new Uint8Array(index.ids.size)
  const ingest: Ingest = { ...into, context, index, taken, result }
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
  return result
}

function wants(ingest: Ingest, entry: ZipEntry): boolean {
  const { index, taken, result, context } = ingest
  const id = idOf(entry)
  const ordinal = id === null ? undefined : index.ids.get(id)
  if (id === null || ordinal === undefined) {
    result.unlisted++
    return false
  }
  if (taken[ordinal] === 1) {
    result.unresolved.set(id, 'the archive contains it more than once')
    return false
  }
  taken[ordinal] = 1
  const stored = ingest.empty || context.suspectIds.has(id) ? null : context.store.osv.readEntry(id)
  return (
    stored === null || differs(entry, stored, index.ids.modifiedAt(ordinal), ingest.asOf, result)
  )
}

function take(ingest: Ingest, entry: ZipEntry, member: Content | ZipFault): void {
  const { index, result, context } = ingest
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
  const listed = listedStamp(index, id)
  const order = compareStamps(identity.modified, listed)
  if (order === 'newer') result.newer++
  const stored = !ingest.empty && context.store.osv.readEntry(id) !== null
  // Stamps can also go backwards, so a differing stamp does not show which is later: the stored record stays until it
  // is requested by itself.
  if (order === 'older' || (order === 'newer' && stored)) {
    result.unresolved.set(id, `the version in the archive is ${order} than listed`)
    // Store it under its own stamp until the listed version is fetched; but never replace a stored record with it.
    if (stored) return
  }
  const stamp = order === 'older' ? (identity.modified ?? listed) : listed
  const record = fromArchive(id, stamp, { ...member, crc32: entry.crc32 }, ingest.asOf)
  ingest.put(record, identity.modified)
  result.written++
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
  result: IngestResult,
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
