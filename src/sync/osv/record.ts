import { hash } from 'node:crypto'
import { crc32 } from 'node:zlib'
import { messageOf } from '../../core/errors.ts'
import { jsonTextOf } from '../../json/objects.ts'
import { gzipMember } from '../../store/database/gzip.ts'
import { pastSeconds } from '../../core/time.ts'
import type { RecordToStore } from '../../store/osv/reads.ts'
import { deflate } from '../../zip/member.ts'
import { refuseCostly } from '../../json/limits.ts'

/** What a record says of itself; the rest of it is none of the mirror's business. */
interface RecordIdentity {
  modified: string | null
}

/** Parses a record and checks that it is the one asked for. A string is the reason why it is refused. */
export function identify(content: Buffer, id: string): RecordIdentity | string {
  const costly = refuseCostly(content)
  if (costly !== null) return costly
  let value: unknown
  try {
    value = JSON.parse(jsonTextOf(content))
  } catch (error) {
    return `not JSON (${messageOf(error).slice(0, 100)})`
  }
  if (typeof value !== 'object' || value === null || !('id' in value))
    return 'no OSV record: it has no id'
  if (value.id !== id) return `its id is ${JSON.stringify(value.id).slice(0, 100)}`
  const modified = 'modified' in value && typeof value.modified === 'string' ? value.modified : null
  return { modified }
}

/**
 * How a record's own stamp stands to the index's. Stamps are texts of differing precision, and an index may be
 * day-granular: then only the day counts. What cannot be read as dates, or is equal as text, is `same`.
 */
export function compareStamps(own: string | null, listed: string): 'older' | 'same' | 'newer' {
  if (own === null || own === listed) return 'same'
  const dayGranular = /^\d{4}-\d\d-\d\d(T00:00:00(\.0+)?(Z|[+-]00:00))?$/.test(listed)
  const a = Date.parse(dayGranular ? own.slice(0, 10) : own)
  const b = Date.parse(dayGranular ? listed.slice(0, 10) : listed)
  if (Number.isNaN(a) || Number.isNaN(b) || a === b) return 'same'
  return a < b ? 'older' : 'newer'
}

/** A record as it came out of an archive, its deflate stream kept. */
export function fromArchive(
  id: string,
  modified: string,
  member: { content: Buffer; deflated: Buffer; crc32: number },
  asOf: number | null,
): RecordToStore {
  const { content, deflated } = member
  return {
    id,
    modified,
    crc32: member.crc32,
    size: content.length,
    sha256: hash('sha256', content, 'buffer'),
    body: gzipMember(deflated, member.crc32, content.length),
    asOf,
  }
}

/** A record as it was fetched singly. */
export function fromAnswer(
  id: string,
  modified: string,
  content: Buffer,
  asOf: number,
): RecordToStore {
  return fromArchive(
    id,
    modified,
    { content, deflated: deflate(content), crc32: crc32(content) },
    asOf,
  )
}

/**
 * The Last-Modified of a new record, unix seconds: `date` (unix milliseconds) unless that is in the future, but not older
 * than what its `stamps` say that is not in the future.
 */
export function recordChanged(
  date: number,
  now: number,
  stamps: readonly (string | null)[],
): number {
  const seconds = stamps.map((stamp) => pastSeconds(stamp, now) ?? 0)
  return Math.max(Math.floor(Math.min(date, now) / 1000), ...seconds)
}
