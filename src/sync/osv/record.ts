import { crc32 as crc32Of } from 'node:zlib'
import { sha256Of } from '../../base/digest.ts'
import { messageOf } from '../../base/errors.ts'
import { namesFix } from '../../base/domain/named-fix.ts'
import { jsonTextOf } from '../../base/json/objects.ts'
import { gzipMember } from '../../store/database/gzip.ts'
import { isBefore, olderDay, pastSeconds } from '../../base/time.ts'
import type { RecordToStore } from '../../store/osv/reads.ts'
import { deflate } from '../../base/gzip/member.ts'
import { refuseCostly } from '../../base/json/limits.ts'

/** Members of a record that the mirror reads. */
interface RecordIdentity {
  modified: string | null
  /** The parsed record. */
  record: object
}

/** Parses a record and checks that it has the requested id. A string is the reason why it is refused. */
export function identify(content: Buffer, id: string): RecordIdentity | string {
  const costly = refuseCostly(content)
  if (costly !== null) return costly
  let value: unknown
  try {
    value = JSON.parse(jsonTextOf(content))
  } catch (error) {
    return `not JSON (${messageOf(error).slice(0, 100)})`
  }
  if (typeof value !== 'object' || value === null || !('id' in value)) return 'not an OSV record: it has no id'
  if (value.id !== id) return `its id is ${JSON.stringify(value.id).slice(0, 100)}`
  const modified = 'modified' in value && typeof value.modified === 'string' ? value.modified : null
  return { modified, record: value }
}

/**
 * Compares a record's own stamp with the index's. Stamps are texts of differing precision; in a day-granular index
 * only the day counts. Stamps that are equal as text, or cannot be parsed as dates, are `same`.
 */
export function compareStamps(own: string | null, listed: string): 'older' | 'same' | 'newer' {
  if (own === null || own === listed) return 'same'
  const dayGranular = /^\d{4}-\d\d-\d\d(T00:00:00(\.0+)?(Z|[+-]00:00))?$/.test(listed)
  const a = Date.parse(dayGranular ? own.slice(0, 10) : own)
  const b = Date.parse(dayGranular ? listed.slice(0, 10) : listed)
  if (Number.isNaN(a) || Number.isNaN(b) || a === b) return 'same'
  return a < b ? 'older' : 'newer'
}

/** Returns a record that was fetched by itself. */
export function fromAnswer(id: string, modified: string, content: Buffer, asOf: number): RecordToStore {
  const crc32 = crc32Of(content)
  const body = gzipMember(deflate(content), crc32, content.length)
  const sums = { crc32, size: content.length, sha256: sha256Of(content) }
  return { id, modified, ...sums, body, fix: namesFix(content), asOf }
}

/**
 * Returns the Last-Modified of a new record, unix seconds: `date` (unix milliseconds, at most `now`), but not older
 * than any of its `stamps` that is not in the future.
 */
export function recordChanged(date: number, now: number, stamps: readonly (string | null)[]): number {
  const seconds = stamps.map((stamp) => pastSeconds(stamp, now) ?? 0)
  return Math.max(Math.floor(Math.min(date, now) / 1000), ...seconds)
}

/** Distinct stamps that are remembered: many records share the day of their stamp. */
const KNOWN_STAMPS = 4096

/**
 * Creates a function that does the same for many records of one date. Parses an equal stamp once, and none that is older than
 * that date by its text.
 */
export function createChangedOf(date: number, now: number): (stamps: readonly (string | null)[]) => number {
  const known = new Map<string | null, number>()
  const least = recordChanged(date, now, [])
  const day = olderDay(least)
  const changedBy = (stamp: string | null): number => {
    if (stamp !== null && isBefore(stamp, day)) return least
    let changed = known.get(stamp)
    if (changed === undefined) {
      if (known.size >= KNOWN_STAMPS) known.clear()
      changed = recordChanged(date, now, [stamp])
      known.set(stamp, changed)
    }
    return changed
  }
  return (stamps) => stamps.reduce((changed, stamp) => Math.max(changed, changedBy(stamp)), least)
}
