import { crc32 } from 'node:zlib'
import { toIso } from '../../base/time.ts'
import { MirrorError } from '../../base/errors.ts'
import { damagedContent } from '../../store/database/faults.ts'
import { contentOf } from '../../store/database/gzip.ts'
import { createOsvScope, parseScopeText } from '../../base/domain/osv-scope.ts'
import { faultOfRecordId } from '../../base/domain/record-id.ts'
import type { ServedRecord } from '../../store/osv/reads.ts'
import type { Reads } from '../../store/reads.ts'
import { type JsonResponse, createAnswer } from '../http/response.ts'
import type { ServedSnapshot } from '../snapshot/served.ts'
import type { Coding } from '../http/request-headers.ts'
import { osvRecordPath } from '../../base/domain/feed-paths.ts'
import { recordId } from '../http/paths.ts'
import type { Problem } from '../http/problems.ts'
import { findMissingRecord } from '../lookup/missing-record.ts'
import { rawTarget, readTarget } from '../http/request-target.ts'

/** The answer for a record, null when upstream has none of that id. Throws `corrupt` when its bytes are not sound. */
export function readRecordAnswer(reads: Reads, id: string, coding: Coding): JsonResponse | null {
  const record = reads.osv.readServed(id)
  if (record === null) return null
  const { tag, changed, size } = record
  const member = soundMember(record)
  const answer = createAnswer(coding, coding === 'gzip' ? member : contentOf(member, size), tag, changed)
  // Upstream's date of the index does not confirm these bytes.
  return record.outdated === 1 ? { ...answer, asOf: record.asOf ?? changed * 1000 } : answer
}

type FindIn = Pick<ServedSnapshot, 'cache' | 'reads'>

/**
 * Looks a record up by its request target as received, in the cache first. Returns undefined when the target is not a record's,
 * or when the record is not stored: then the full lookup explains why. Throws as above.
 */
export function findRecord({ cache, reads }: FindIn, target: string, coding: Coding): JsonResponse | undefined {
  if (!RECORD_TARGET.test(target)) return undefined // before the cache, whose other keys contain characters that no target has
  const known = cache.get(target, coding)
  if (known !== undefined) return known
  const path = decodedPath(target)
  const id = path === null ? null : recordId(path)
  const answer = id === null ? null : readRecordAnswer(reads, id, coding)
  if (answer === null) return undefined
  cache.put(target, 'osv', answer)
  return answer
}

/** Visible ASCII without a query: what may be a key of the cache. The same target always means the same record. */
const RECORD_TARGET = /^\/external\/osv\/[!-"$->@-~]+$/

/** The decoded path of a target; null for one that cannot be decoded. */
function decodedPath(target: string): string | null {
  if (/^[^%?#]*$/.test(target)) return target
  try {
    return readTarget(target).path
  } catch {
    return null
  }
}

/** A record that was asked for by another form of its id. */
interface OtherRecord {
  readonly answer: JsonResponse
  /** `Content-Location`: where it is, as a flat list of header fields. */
  readonly more: readonly string[]
}

/**
 * The one record that a target may mean which names none: its id trimmed, or put into the path without being encoded. Null
 * when there is none, or more than one. For targets that were looked up as they should be before.
 */
export function findOtherRecord(
  { reads, otherIds }: Pick<ServedSnapshot, 'reads' | 'otherIds'>,
  target: string,
  coding: Coding,
): OtherRecord | null {
  const asked = [target, rawTarget(target).path, decodedPath(target) ?? ''].flatMap((path) => recordId(path) ?? [])
  const ids = [...new Set([...asked, ...otherIds.find(asked)])]
  const stored = ids.filter((id) => reads.osv.readEntry(id) !== null)
  const [id] = stored
  const answer = id === undefined || stored.length > 1 ? null : readRecordAnswer(reads, id, coding)
  if (answer === null || id === undefined) return null
  return { answer, more: ['Content-Location', osvRecordPath(id)] }
}

/** Checks what is cheap to check: the member's own checksum, its frame, and its declared size. */
function soundMember({ body, size, bodyCrc32 }: ServedRecord): Buffer {
  const sound =
    body !== null &&
    body.length > 18 &&
    body.readUInt16BE(0) === 0x1f8b &&
    body.readUInt32LE(body.length - 4) === size >>> 0 &&
    crc32(body) === bodyCrc32
  if (sound) return body
  throw damagedContent('the stored bytes of a record are damaged')
}

const LOST = 'the index lists a record that is not found'

/**
 * Explains a missing record: 404 where upstream has none, with the time when the mirror observed a removal; 404 or 503 with the reason for one that upstream lists and the mirror could not fetch.
 * Throws `corrupt` for one that the served index lists: then the database is damaged.
 */
export async function missingRecord(served: ServedSnapshot, id: string): Promise<Problem> {
  const fault = faultOfRecordId(id)
  if (fault !== null) return notFound(`no record of this id can be mirrored: ${fault}`, { id })
  if (await served.listing.lists(id)) throw new MirrorError('corrupt', LOST, { cause: damagedContent(LOST) })
  const outside = whyOutOfScope(served.reads, id)
  if (outside !== null) return notFound(outside, { id, outOfScope: 'yes' })
  const known = missingForReason(served, id)
  if (known !== null) return known
  const tombstone = served.reads.osv.readTombstone(id)
  if (tombstone === null) return notFound(unlisted(served.reads), { id })
  const removedAt = toIso(tombstone.removedAt)
  const message = `this record was removed: upstream's index stopped listing it, seen on ${removedAt}`
  return notFound(message, { id, removedAt })
}

const UNLISTED =
  "upstream's index of this snapshot (X-Mirror-As-Of) does not list this id; a record published since comes with a later sync or bundle"

/** Where the scope is another mirror's, what it leaves out is not known here. */
function unlisted({ snapshots }: Reads): string {
  if ((snapshots.readSnapshot('osv')?.scope ?? null) === null) return UNLISTED
  return `the index of this snapshot (X-Mirror-As-Of) does not list this id: upstream does not list it, or it is ${OUT_OF_SCOPE}; a record published since comes with a later sync or bundle`
}

const OUT_OF_SCOPE = 'out of the scope of this mirror (osv.scope)'

function notFound(message: string, fields: Problem['fields']): Problem {
  return { status: 404, error: 'not_found', message, ...(fields && { fields }) }
}

/** Returns why a record is out of the scope that the snapshot was made with; null when it is not known to be. */
export function whyOutOfScope({ snapshots, osv }: Pick<Reads, 'snapshots' | 'osv'>, id: string): string | null {
  const settings = parseScopeText(snapshots.readSnapshot('osv')?.scope ?? null)
  if (settings === null) return null
  if (osv.isOutside(id)) return `upstream lists this record, and it is ${OUT_OF_SCOPE} by its ecosystems`
  return createOsvScope(settings)?.judgeId(id) === 'out'
    ? `ids of this form are ${OUT_OF_SCOPE}: upstream may have this record`
    : null
}

/** Of a snapshot that is not whole: why the record is missing; null where upstream does not list it either. */
function missingForReason({ reads }: ServedSnapshot, id: string): Problem | null {
  const missing = findMissingRecord(reads, id)
  if (missing === null) return null
  const { kind, message } = missing
  if (kind !== 'failed') return notFound(message, { id })
  return { status: 503, error: 'not_ready', message, fields: { id } }
}
