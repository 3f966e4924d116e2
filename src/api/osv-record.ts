import type { IncomingMessage, ServerResponse } from 'node:http'
import type { ViewRecord, Views } from '../store/views.ts'
import { sendAnswer } from './answer.ts'
import type { Heads } from './heads.ts'
import { chooseCoding } from './negotiate.ts'
import type { SnapshotOrigin } from './origin.ts'
import { sendStatus } from './osv-status.ts'
import { findOtherViewRecord, viewRecordAnswer } from './view-answers.ts'
import { readRequestHeaders } from './wishes.ts'

/** Longest id that is looked up, as at osv.dev. */
const MAX_ID = 100

/** What of a generation of views is asked. */
export type RecordViews = Pick<Views, 'info' | 'listUntidyIds' | 'readUpstreamRecord'>

/** `vulns/{id}`: upstream's bytes of one record, with validators. `id` is decoded. */
export function answerOsvRecord(
  views: RecordViews,
  id: string,
  { request, response, origin, heads }: RecordCall,
): void {
  if (id.length > MAX_ID)
    return sendStatus(request, response, { status: 400, message: 'ID too long', origin })
  const read = (one: string): ViewRecord | null => views.readUpstreamRecord(one)
  const record = read(id) ?? findOtherViewRecord(views, [id], read)?.record ?? null
  if (record === null)
    return sendStatus(request, response, { status: 404, message: 'Bug not found.', origin })
  const wishes = readRequestHeaders(request.rawHeaders)
  const coding = chooseCoding(wishes.acceptEncoding)
  const answer = viewRecordAnswer(record, coding, views)
  sendAnswer({ request, response, wishes }, answer, origin, heads)
}

/** The request that a record is the answer to. */
export interface RecordCall {
  readonly request: IncomingMessage
  readonly response: ServerResponse
  readonly origin: SnapshotOrigin
  readonly heads: Heads
}
