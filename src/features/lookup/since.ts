import { type SincePlace, SINCE_FORMS_HERE, isSnapshotName, placesSince } from '../../server/followers/since.ts'
import { MirrorError } from '../../base/errors.ts'
import type { SourceName } from '../../base/domain/sources.ts'
import { missingUnit, readSince, toIso } from '../../base/time.ts'
import type { Reads } from '../../store/reads.ts'

/**
 * Where the log of a source continues from a time or a snapshot that a command names. Throws `bad_request` for another text,
 * `not_ready` where the log does not reach back so far; `instead`: what to do then, where it is not to begin with the log. `now`
 * in Unix milliseconds.
 */
export function sincePlace(reads: Reads, source: SourceName, since: string, now: number, instead?: string): SincePlace {
  const [place] = placesSince(reads, since, source, now)
  if (place) return place
  const oldest = reads.changes.readNextLogged(source, 0)
  if (oldest === null) throw noLog(source)
  if (readSince(since, now) === null && !isSnapshotName(since))
    throw new MirrorError('bad_request', `--since ${since} is none of: ${SINCE_FORMS_HERE}`)
  const begins = toIso(oldest.publishedAt)
  throw new MirrorError(
    'not_ready',
    `what changed since ${since}${missingUnit(since)} is not known here: the log of changes begins on ${begins} (data.historyDays); ${instead ?? `use --since ${begins}`}`,
  )
}

/** The error where no snapshot of a source is in the log. */
export function noLog(source: SourceName): MirrorError {
  return new MirrorError('not_ready', `the log of changes has no snapshot of ${source}`)
}
