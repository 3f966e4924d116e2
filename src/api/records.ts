import { crc32 } from 'node:zlib'
import { MirrorError } from '../errors.ts'
import { contentOf } from '../store/gzip.ts'
import type { ServedRecord } from '../store/osv.ts'
import type { Reads } from '../store/pinned.ts'
import { type Answer, createAnswer } from './answer.ts'
import type { Moment } from './moment.ts'
import type { Coding } from './negotiate.ts'
import { RECORDS, recordId } from './paths.ts'
import type { Problem } from './problem.ts'
import { rawTarget, readTarget } from './target.ts'

/** The answer for a record, null when upstream has none of that id. Throws `corrupt` when its bytes are not sound. */
export function readRecordAnswer(reads: Reads, id: string, coding: Coding): Answer | null {
  const record = reads.readServed(id)
  if (record === null) return null
  const { tag, changed } = record
  const member = soundMember(record)
  // What goes out as it lies is checked too; a member of an earlier version has no checksum but the one of its content.
  const checked = coding === 'gzip' && record.bodyCrc32 !== null
  const content = checked ? null : contentOf(member, record.size)
  const body = coding === 'gzip' || content === null ? member : content
  return createAnswer(coding, body, tag, changed)
}

/**
 * Looks a record up by its request target as it came, in the cache first. Undefined when the target is not a record's,
 * or upstream has no such record: then the longer way says why. Throws as above.
 */
export function findRecord(moment: Moment, target: string, coding: Coding): Answer | undefined {
  const known = moment.cache.get(target, coding)
  if (known !== undefined) return known
  if (!RECORD_TARGET.test(target)) return undefined
  const path = decodedPath(target)
  const id = path === null ? null : recordId(path)
  if (id === null) return undefined
  const answer = readRecordAnswer(moment.reads, id, coding)
  if (answer === null) return undefined
  moment.cache.put(target, 'osv', answer)
  return answer
}

/** Visible ASCII without a query: what may be a key of the cache. The same target always means the same record. */
const RECORD_TARGET = /^\/external\/osv\/[!-"$->@-~]+$/

/** The decoded path of a target; null for one that cannot be decoded. */
function decodedPath(target: string): string | null {
  try {
    return readTarget(target).path
  } catch {
    return null
  }
}

/** A record that was asked for by another form of its id. */
export interface OtherRecord {
  readonly answer: Answer
  /** `Content-Location`: where it is, as a flat list of header fields. */
  readonly more: readonly string[]
}

/**
 * The one record that a target may mean which names none: its id trimmed, or put into the path without being encoded. Null
 * when there is none, or more than one. For targets that were looked up as they should be before.
 */
export function findOtherRecord(
  { reads, otherIds }: Pick<Moment, 'reads' | 'otherIds'>,
  target: string,
  coding: Coding,
): OtherRecord | null {
  const asked = [target, rawTarget(target).path, decodedPath(target) ?? ''].flatMap(
    (path) => recordId(path) ?? [],
  )
  const ids = [...new Set([...asked, ...otherIds.find(asked)])]
  const held = ids.filter((id) => reads.readEntry(id) !== null)
  const [id] = held
  const answer = id === undefined || held.length > 1 ? null : readRecordAnswer(reads, id, coding)
  if (answer === null || id === undefined) return null
  return { answer, more: ['Content-Location', `${RECORDS}${encodeURIComponent(id)}.json`] }
}

/** Checks what costs little: the member's own checksum, its frame, and the size it says it holds. */
function soundMember({ body, size, bodyCrc32 }: ServedRecord): Buffer {
  const sound =
    body !== null &&
    body.length > 18 &&
    body.readUInt16BE(0) === 0x1f8b &&
    body.readUInt32LE(body.length - 4) === size >>> 0 &&
    (bodyCrc32 === null || crc32(body) === bodyCrc32)
  if (sound) return body
  throw new Error('the stored bytes of this record are damaged: "patchmirror verify --repair"')
}

/**
 * 404 for a record: one that upstream removed says when the mirror learned of it, and a miswritten path of another
 * document names that. Throws `corrupt` for one that the index lists: then the database is damaged.
 */
export function missingRecord(moment: Moment, id: string, closest: string | null): Problem {
  if (moment.listing.lists(id))
    throw new MirrorError(
      'corrupt',
      `the index lists ${JSON.stringify(id)}, its record is not found`,
    )
  const tombstone = moment.reads.readTombstone(id)
  if (tombstone === null) {
    const message = 'upstream has no record of this id'
    const fields = closest === null ? { id } : { id, closest }
    return { status: 404, error: 'not_found', message, fields }
  }
  const removedAt = new Date(tombstone.removedAt).toISOString()
  const message = `this record was removed: upstream's index stopped listing it, seen on ${removedAt}`
  return { status: 404, error: 'not_found', message, fields: { id, removedAt } }
}
