import type { IncomingMessage, ServerResponse } from 'node:http'
import type { RecordAnswer } from '../../base/reports/records.ts'
import { describeDates, readUpstreamDates } from '../lookup/dates.ts'
import { type RecordTagsSettings, readRecordTags, recordTagsMessage } from '../lookup/record-tags.ts'
import { findMissingRecord } from '../lookup/missing-record.ts'
import { RECORDS } from '../http/paths.ts'
import { sendProblem } from '../http/problems.ts'
import { readTarget } from '../http/request-target.ts'
import { respondUnstored } from '../http/response.ts'
import type { ServedSnapshot } from '../snapshot/served.ts'
import { refuseStale } from '../snapshot/stale.ts'
import type { Access } from '../access/access.ts'

/** What dates and tags of a record are answered from. */
interface RecordParts {
  readonly served: Pick<ServedSnapshot, 'reads' | 'knownOrigin'>
  readonly access: Access
  readonly config: RecordTagsSettings
}

/** Sources that the findings of tags are made of. */
const TAGS_OF = ['osv', 'catalog'] as const
const WITHOUT_KEY = 'tags are shown to clients with a local key'

/**
 * Answers `/-/records/{id}`: since when a record is known here, also of a removed one, and the dates that the record itself
 * has, with how old the data is; for clients with a key also the mirrored tags with it. Throws `bad_request` for an id that cannot be decoded.
 */
export function sendRecordDates(
  { served, access, config }: RecordParts,
  request: IncomingMessage,
  response: ServerResponse,
): void {
  const { reads, knownOrigin } = served
  const denied = access.judge(request)
  if (denied !== null && request.headers.authorization !== undefined) return sendProblem(request, response, denied)
  const id = readTarget(request.url ?? '').path.slice(RECORDS.length)
  const dates = reads.dates.readDates(id)
  if (dates === null) {
    const missing = findMissingRecord(reads, id)
    const message = missing?.message ?? 'no snapshot of this mirror had a record of this id'
    const fields = { id: id.slice(0, 512) }
    const isFailed = missing?.kind === 'failed'
    const [status, error] = isFailed ? ([503, 'not_ready'] as const) : ([404, 'not_found'] as const)
    return sendProblem(request, response, { status, error, message, fields })
  }
  const { asOf = null, stale } = knownOrigin('osv') ?? {}
  // Never refused for its age: what is said of the past stays true.
  const age = { asOf, stale: stale?.limit ?? null }
  const refuseOld = (): void => {
    for (const source of TAGS_OF) {
      const origin = knownOrigin(source)
      if (origin !== null) refuseStale(origin)
    }
  }
  const found = denied === null ? readRecordTags(config, reads, id, refuseOld) : WITHOUT_KEY
  const more = { upstream: readUpstreamDates(reads, id), ...age, ...recordTagsMessage(found) }
  const answer: RecordAnswer = { ...describeDates(dates), ...more }
  const body = Buffer.from(JSON.stringify(answer))
  respondUnstored({ request, response }, { body, coding: 'identity', vary: null, origin: null })
}
