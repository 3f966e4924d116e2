import { toIsoOrNull } from '../../base/time.ts'
import type { DescribedDates, NotedDate, UpstreamDates } from '../../base/reports/records.ts'
import { isObject, jsonTextOf } from '../../base/json/objects.ts'
import { contentOf } from '../../store/database/gzip.ts'
import { type RecordDates, AT_LATEST, isOnMirror } from '../../store/dates/reads.ts'
import type { Reads } from '../../store/reads.ts'

/** Describes the stored dates of a record. */
export function describeDates(dates: RecordDates): DescribedDates {
  const { id, flags, firstSeen, fixSeen, changedAt } = dates
  const noted = (at: number | null, flag: number): NotedDate => {
    return { at: toIsoOrNull(at), exact: (flags & flag) === 0 }
  }
  const fix = noted(fixSeen, AT_LATEST.fixSeen)
  return {
    id,
    state: isOnMirror(dates) ? 'present' : 'removed',
    firstSeen: noted(firstSeen, AT_LATEST.firstSeen),
    fixSeen: fix.at === null && fix.exact ? null : fix,
    changed: noted(changedAt, AT_LATEST.changedAt),
    removedAt: toIsoOrNull(dates.removedAt),
    returnedAt: toIsoOrNull(dates.returnedAt),
  }
}

/** Returns the dates that a record itself has; null if it is not stored, or no JSON object. */
export function readUpstreamDates({ osv }: Pick<Reads, 'osv'>, id: string): UpstreamDates | null {
  const row = osv.readRecord(id)
  if (row === null) return null
  try {
    const text = jsonTextOf(contentOf(row.body, row.size))
    const record: unknown = JSON.parse(text)
    if (!isObject(record)) return null
    const { published, modified, withdrawn } = record
    const textOf = (value: unknown): string | null => (typeof value === 'string' ? value : null)
    return {
      published: textOf(published),
      modified: textOf(modified),
      withdrawn: textOf(withdrawn),
    }
  } catch {
    return null // its bytes are served as upstream has them
  }
}

/** Returns lines for people: the name of each date, the date, and a note. */
export function datesInWords(dates: RecordDates): [name: string, at: number | null, note: string][] {
  const { flags, firstSeen, fixSeen, changedAt, removedAt, returnedAt } = dates
  const note = (flag: number): string => ((flags & flag) === 0 ? '' : 'at the latest')
  const noFix = (flags & AT_LATEST.fixSeen) === 0 ? 'no fix named yet' : 'no fix known'
  return [
    ['first seen here', firstSeen, note(AT_LATEST.firstSeen)],
    ['fix first seen', fixSeen, fixSeen === null ? noFix : note(AT_LATEST.fixSeen)],
    ['content changed', changedAt, changedAt === firstSeen ? 'unchanged since first seen' : note(AT_LATEST.changedAt)],
    ...(removedAt === null ? [] : [['removed', removedAt, ''] as [string, number, string]]),
    ...(returnedAt === null ? [] : [['seen again', returnedAt, ''] as [string, number, string]]),
  ]
}
