import { MirrorError } from '../../core/errors.ts'
import type { RecordEntry, RecordToStore } from '../../store/osv/reads.ts'
import type { ZipEntry } from '../../zip/directory.ts'
import type { Content, ZipFault } from '../../zip/member.ts'
import type { ArchiveReader } from '../../zip/reader.ts'
import type { SyncContext } from '../context.ts'
import { type OsvIndex, listedStamp } from './index-parser.ts'
import { compareStamps, fromArchive, identify } from './record.ts'

/** What an archive could not settle, and what it told. */
export interface IngestResult {
  /** Listed ids that the archive lacks, refuses, doubles or holds older than listed; each with the reason. */
  unresolved: Map<string, string>
  written: number
  /** Members whose content differs under an unchanged stamp: changes that the index did not announce. */
  silent: number
  /** Members newer than their stamp in the index. */
  newer: number
  /** Members older than what was fetched singly meanwhile; left alone. */
  behind: number
  /** Members that the index does not list. */
  unlisted: number
}

/** The archive's date, and where what is taken from it goes. */
interface IngestInto {
  /** Unix milliseconds; null: unknown. */
  asOf: number | null
  /** Nothing is held: no need to compare. */
  empty: boolean
  /** `own`: the `modified` that the record has in itself. */
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
 * Takes from an archive what the index lists and the store does not hold like this: reads the members whose CRC-32
 * or size differ from what is held (all of them the first time), verifies each, and puts it.
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
  let looked = 0
  const want = (entry: ZipEntry): boolean => {
    if (++looked % 2048 === 0) report(context, looked, total)
    return wants(ingest, entry)
  }
  await reader.readMembers(want, (entry, member) => {
    take(ingest, entry, member)
  })
  report(context, total, total)
  for (let ordinal = 0; ordinal < taken.length; ordinal++) {
    if (taken[ordinal] === 0) result.unresolved.set(index.ids.idAt(ordinal), 'the archive lacks it')
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
    result.unresolved.set(id, 'the archive holds it more than once')
    return false
  }
  taken[ordinal] = 1
  const held = ingest.empty || context.doubted.has(id) ? null : context.store.readEntry(id)
  return held === null || differs(entry, held, index.ids.modifiedAt(ordinal), ingest.asOf, result)
}

function take(ingest: Ingest, entry: ZipEntry, member: Content | ZipFault): void {
  const { index, result, context } = ingest
  const id = idOf(entry) ?? ''
  if (result.unresolved.has(id)) return // doubled within one read: neither is to be believed
  if ('refused' in member) {
    result.unresolved.set(id, member.refused)
    return
  }
  // A member of the archive is deflated: only here, where it is read, can a credential be seen in it.
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
  const held = !ingest.empty && context.store.readEntry(id) !== null
  // Stamps also move backwards, so another stamp does not say which is the later: what is held stays until asked.
  if (order === 'older' || (order === 'newer' && held)) {
    result.unresolved.set(id, `the archive holds it ${order} than listed`)
    // Kept under its own stamp, as a stand-in until the listed one is had; but never over what is held.
    if (held) return
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

/** Whether a held record must be read anew from the archive, and what that says about the feed. */
function differs(
  entry: ZipEntry,
  held: RecordEntry,
  listed: string,
  archiveAsOf: number | null,
  result: IngestResult,
): boolean {
  const same = entry.crc32 === held.crc32 && entry.size === held.size
  if (held.modified !== listed) {
    if (!same) return true
    result.unresolved.set(held.id, 'listed as changed, but the archive holds it as before')
    return false
  }
  if (same) return false
  if (held.asOf !== null && archiveAsOf !== null && held.asOf > archiveAsOf) {
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
