import { isObject, jsonTextOf } from '../../base/json/objects.ts'
import { clip } from '../../base/text.ts'
import { toIso } from '../../base/time.ts'
import { contentOf } from '../../store/database/gzip.ts'
import type { Reads } from '../../store/reads.ts'

/** A record that upstream removed. */
export interface RemovedRecord {
  readonly id: string
  /** When the snapshot without it was published, ISO 8601 UTC. */
  readonly removedAt: string
}

type Tombstone = ReturnType<Reads['osv']['listTombstones']>[number]

type RemovedReads = Pick<Reads, 'osv' | 'dates'>

/** Removed records that a sentence names. */
const MOST_NAMED = 3

/**
 * Returns the records that upstream removed and that were about an id, the newest first: their own id has it at its end, or
 * the last version, as long as `data.historyDays` keeps it, names it as another id.
 */
export function findRemovedAbout({ osv, dates }: RemovedReads, text: string): RemovedRecord[] {
  const id = text.trim().toUpperCase()
  if (id === '') return []
  return osv
    .listTombstones()
    .filter((one) => isAbout(osv, one, id) && !osv.isMissing(one.id) && !osv.isOutside(one.id))
    .map((one) => ({ id: one.id, removedAt: toIso(dates.readDates(one.id)?.removedAt ?? one.removedAt) }))
}

function isAbout(osv: Reads['osv'], { id: record, kept }: Tombstone, id: string): boolean {
  const own = record.toUpperCase()
  if (own === id || own.endsWith(`-${id}`)) return true
  const last = kept === 1 ? osv.readRemoved(record) : null
  if (last === null) return false
  try {
    const text = jsonTextOf(contentOf(last.body, last.size))
    return text.toUpperCase().includes(id) && namesOf(JSON.parse(text)).includes(id)
  } catch {
    return false // what cannot be read names nothing
  }
}

/** Returns the other ids of a record, as the index of ids has them. */
function namesOf(record: unknown): string[] {
  if (!isObject(record)) return []
  const { aliases, upstream, related } = record
  const named: unknown[] = [aliases, upstream, related].flatMap((one): unknown[] => (Array.isArray(one) ? one : []))
  return named.flatMap((one) => (typeof one === 'string' ? [one.toUpperCase()] : []))
}

/** Returns removed records, and when they were removed, in words. */
export function removedWords(removed: readonly RemovedRecord[]): string {
  const named = removed.slice(0, MOST_NAMED).map(({ id, removedAt }) => `${clip(id, 200)} at ${removedAt}`)
  const more = removed.length - named.length
  return `${named.join(', ')}${more > 0 ? ` and ${more} more` : ''}, as of the change log`
}

/** Says what removed records leave unknown of tags. */
export function removedTagsWords(removed: readonly RemovedRecord[]): string {
  return `upstream removed ${removedWords(removed)}: tags are not judged by what is removed, so no statement about them follows from it`
}
