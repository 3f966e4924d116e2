import { MirrorError } from '../../../base/errors.ts'
import { faultOfRecordId } from '../../../base/domain/record-id.ts'
import { AT_LATEST, type RecordDates } from '../../../store/dates/reads.ts'
import { type Check, integerField, orNull } from '../../../base/json/shapes.ts'

/** The first line of the member with the dates. */
export const DATES_HEADER = '{"kind":"patchmirror-osv-dates","format":1}'

/** Returns the line of a record: its id, five dates in Unix milliseconds, and the flags. */
export function datesLine(dates: RecordDates): string {
  const { id, firstSeen, changedAt, fixSeen, removedAt, returnedAt, flags } = dates
  return JSON.stringify([id, firstSeen, changedAt, fixSeen, removedAt, returnedAt, flags])
}

const time = integerField(0, 2 ** 50)
const maybe = orNull(time)
const ALL_FLAGS = AT_LATEST.firstSeen + AT_LATEST.fixSeen + AT_LATEST.changedAt
const someFlags = integerField(0, ALL_FLAGS)
const LENGTH = 7

/** Parses a line. Throws `bundle` with its position. */
export const parseDates: Check<RecordDates> = (value, place) => {
  if (!Array.isArray(value) || value.length !== LENGTH)
    throw new MirrorError('bundle', `${place} is not a list of ${LENGTH} values`)
  const [id, firstSeen, changedAt, fixSeen, removedAt, returnedAt, flags] = value as unknown[]
  if (typeof id !== 'string' || faultOfRecordId(id) !== null)
    throw new MirrorError('bundle', `${place} does not begin with the id of a record`)
  return {
    id,
    firstSeen: time(firstSeen, place),
    changedAt: time(changedAt, place),
    fixSeen: maybe(fixSeen, place),
    removedAt: maybe(removedAt, place),
    returnedAt: maybe(returnedAt, place),
    flags: someFlags(flags, place),
  }
}
