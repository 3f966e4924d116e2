import { MirrorError } from '../../base/errors.ts'
import { SINCE_FORMS, readSince, toIso } from '../../base/time.ts'
import type { SourceName } from '../../base/domain/sources.ts'
import type { LogSpan, LoggedSnapshot } from '../../store/changes/log.ts'
import type { Reads } from '../../store/reads.ts'
import { isBack } from '../../store/runs/rollback.ts'

/** Where the log continues from what a client named. */
export interface SincePlace extends Pick<LogSpan, 'source' | 'after'> {
  /** The snapshot that was served then. */
  readonly snapshot: string
  /** The time that was named, Unix milliseconds; null: a snapshot or its number was. */
  readonly at: number | null
  /** When this mirror first stored the source, Unix milliseconds, where the time that was named is before; null: it is not. */
  readonly firstStored: number | null
}

/** The beginning of a snapshot's id, as `patchmirror status` prints it. */
const PREFIX = /^[0-9a-f]{12,63}$/
const SEQUENCE = /^\d{1,9}$/

/**
 * Finds the places in the log that a snapshot (its id or its first 12 characters), its number, or a time names. A snapshot
 * may be of several sources; a number or a time is of the wanted one, and of the records without one. A time before the
 * first snapshot that was ever stored names that snapshot. Empty when the log does not know it, or forgot what was served
 * then. Throws `bad_request` for a time in the future.
 */
export function placesSince(
  { changes }: Pick<Reads, 'changes'>,
  since: string,
  wanted: SourceName | null,
  now: number,
): SincePlace[] {
  const source = wanted ?? 'osv'
  const of = (row: LoggedSnapshot | null, at: number | null): SincePlace[] =>
    row === null ? [] : [{ ...placeAt(row), at }]
  if (SEQUENCE.test(since)) return of(changes.readLoggedSequence(source, Number(since)), null)
  const at = readSince(since, now)
  if (at !== null && at > now) throw new MirrorError('bad_request', `since=… is in the future: ${since}`)
  if (at !== null) {
    const served = changes.readLoggedAt(source, at)
    return served === null ? beforeAll(changes.readNextLogged(source, 0), at) : of(served, at)
  }
  const snapshot = PREFIX.test(since) ? (changes.findSnapshot(since) ?? since) : since
  return changes
    .findInLog(snapshot)
    .filter((place) => place.source === (wanted ?? place.source))
    .map((place) => ({ ...place, snapshot, at: null, firstStored: null }))
}

function placeAt({ source, id, snapshot, publishedAt }: LoggedSnapshot): SincePlace {
  return { source, after: id, snapshot, at: publishedAt, firstStored: null }
}

/** Where the oldest row of the log is the first snapshot ever, nothing was forgotten: before it nothing was stored. */
function beforeAll(oldest: LoggedSnapshot | null, at: number): SincePlace[] {
  if (oldest === null || oldest.previous !== null || oldest.sequence !== 1) return []
  return [{ ...placeAt(oldest), at, firstStored: oldest.publishedAt }]
}

/** Says why a list begins later than it was asked for; null: it does not. */
export function firstStoredText({ source, firstStored }: SincePlace): string | null {
  if (firstStored === null) return null
  return `this mirror was first filled with ${source} on ${toIso(firstStored)}: before that nothing was stored; this lists what changed since`
}

/** Says that a list ends at older data than it begins with; null: nothing says so. `to`: the snapshot at its end. */
export function wentBackText(
  reads: Pick<Reads, 'changes' | 'runs'>,
  { source, after, snapshot }: SincePlace,
  to: string,
): string | null {
  const { changes } = reads
  const first = changes.readLogged(after)
  const from = { snapshot, asOf: first?.snapshot === snapshot ? first.asOf : null }
  const [last] = changes.findInLog(to).filter((place) => place.source === source)
  const asOf = changes.readLogged(last?.after ?? 0)?.asOf ?? null
  return isBack(reads, source, from, { snapshot: to, asOf }) ? WENT_BACK : null
}

const WENT_BACK = 'the mirror went back to older data: what is removed or undone here is not known to be so upstream'

/** The time within which changes are shown when none is named. */
const DEFAULT = '7d'

/** Returns the place of the records a week ago, or the beginning of the log where it is younger; null where the log has nothing. */
export function placeByDefault(reads: Pick<Reads, 'changes'>, now: number): SincePlace | null {
  const [place] = placesSince(reads, DEFAULT, 'osv', now)
  if (place !== undefined) return place
  const oldest = reads.changes.readNextLogged('osv', 0)
  return oldest && placeAt(oldest)
}

/** Whether a text is written as a snapshot or its number, whatever the log has. */
export function isSnapshotName(since: string): boolean {
  return /^(?:[0-9a-f]{12,64}|\d{1,9})$/.test(since)
}

/** What `since` may name, for messages. */
export const SINCE_FORMS_HERE = `the value of X-Mirror-Snapshot or /-/status, the number of a snapshot, ${SINCE_FORMS}`
