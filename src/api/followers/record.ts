import type { IncomingMessage, ServerResponse } from 'node:http'
import { describeDates, readUpstreamDates } from '../lookup/dates.ts'
import { RECORDS } from '../http/paths.ts'
import { sendProblem } from '../http/problems.ts'
import { readTarget } from '../http/request-target.ts'
import { respondUnstored } from '../http/response.ts'
import type { ServedSnapshot } from '../snapshot/served.ts'

/**
 * Answers `/-/records/{id}`: since when a record is known here, also of a removed one, and the dates that the record itself
 * has, with how old the data is. Throws `bad_request` for an id that cannot be decoded.
 */
export function sendRecordDates(
  { reads, knownOrigin }: Pick<ServedSnapshot, 'reads' | 'knownOrigin'>,
  request: IncomingMessage,
  response: ServerResponse,
): void {
  const id = readTarget(request.url ?? '').path.slice(RECORDS.length)
  const dates = reads.dates.readDates(id)
  if (dates === null) {
    const message = 'no snapshot of this mirror had a record of this id'
    const problem = { status: 404, error: 'not_found', message, fields: { id: id.slice(0, 512) } }
    sendProblem(request, response, problem)
    return
  }
  const { asOf = null, stale } = knownOrigin('osv') ?? {}
  // Never refused for its age: what is said of the past stays true.
  const age = { asOf, stale: stale?.limit ?? null }
  const answer = { ...describeDates(dates), upstream: readUpstreamDates(reads, id), ...age }
  const body = Buffer.from(JSON.stringify(answer))
  respondUnstored({ request, response }, { body, coding: 'identity', vary: null, origin: null })
}
