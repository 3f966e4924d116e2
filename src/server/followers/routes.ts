import type { IncomingMessage, ServerResponse } from 'node:http'
import type { Access } from '../access/access.ts'
import { answerChanges } from './changes.ts'
import { asksForDifferences } from './changes-query.ts'
import { type EventLog, type FindingsLog, createSnapshotLog } from './event-log.ts'
import { type Events, type EventsOptions, createEvents } from './events.ts'
import { type Failures, methodNotAllowed, sendProblem } from '../http/problems.ts'
import type { ServedSnapshot } from '../snapshot/served.ts'
import { isRefused, refuseStale } from '../snapshot/stale.ts'
import type { ResponseAccount } from '../../base/connections/responses.ts'
import type { RecordAnswer } from '../../base/reports/records.ts'
import { type RecordTagsSettings, readRecordTags, recordTagsMessage } from '../lookup/record-tags.ts'
import { respondUnstored } from '../http/response.ts'
import { askingOf } from '../reading/asking.ts'
import type { ReadReply } from '../reading/request.ts'
import type { ReadingThread } from '../reading/thread.ts'
import { CHANGES, EVENTS_PATH, RECORDS } from '../http/paths.ts'
import { rawTarget, readTarget } from '../http/request-target.ts'
import { describeDates, readUpstreamDates } from '../lookup/dates.ts'
import { findMissingRecord } from '../lookup/missing-record.ts'

/** Bounds of the stream of events; the defaults when not given. */
export type EventBounds = Pick<EventsOptions, 'heartbeatMs' | 'maxListeners'>

/** What the pages for followers are made from. */
export interface FollowerOptions {
  readonly served: Pick<ServedSnapshot, 'reads' | 'servedPin' | 'originOf' | 'knownOrigin'>
  readonly access: Access
  readonly failures: Failures
  readonly reading: ReadingThread
  /** Returns who sent a request. */
  readonly holderOf: ResponseAccount['holderOf']
  /** Events that were received and passed on; null: no webhooks here. */
  readonly webhooks: EventLog | null
  /** What changed in the findings of tags; null: they are not judged here. */
  readonly findings: FindingsLog | null
  readonly bounds: EventBounds
  /** Decides whether tags are judged, and where. */
  readonly config: RecordTagsSettings
  /** Unix milliseconds. */
  readonly now: () => number
  /** Called with the last served entry of the change log, at first and whenever it changes. */
  readonly onServed: (log: number) => void
  /** Called with whether the findings of tags are served, at first and whenever that changes. */
  readonly onFindingsServed: (isServed: boolean) => void
}

/** The pages for those who follow the mirror: `/-/changes`, `/-/events` and `/-/records/{id}`. */
interface FollowerRoutes extends Pick<Events, 'look' | 'close'> {
  /** Answers a request for one of them; false when it is for another path. */
  answer(request: IncomingMessage, response: ServerResponse): boolean
}

/** Sources without which the findings of tags are not served. */
const FINDINGS_OF = ['osv', 'catalog'] as const

/** Creates the routes. They report the served snapshot only, so every reported change is already readable. */
export function createFollowerRoutes(options: FollowerOptions): FollowerRoutes {
  const { served, access, failures, webhooks, findings, bounds, onServed, onFindingsServed } = options
  const { reads } = served
  const snapshots = createSnapshotLog(reads.changes)
  const servesFindings = (): boolean => !FINDINGS_OF.some((source) => isRefused(served.knownOrigin(source)))
  const addressOf = (request: IncomingMessage): string => options.holderOf(request).address()
  const sources = { snapshots, webhooks, findings, servesFindings }
  const events = createEvents({ ...bounds, ...sources, access, addressOf })
  let lastServed: number = -1
  let servedFindings: boolean | null = null
  return {
    look() {
      events.look()
      const last = snapshots.last()
      if (last !== lastServed) onServed(last)
      lastServed = last
      const isServed = servesFindings()
      if (isServed !== servedFindings) onFindingsServed(isServed)
      servedFindings = isServed
    },
    close: () => events.close(),
    answer(request, response) {
      const { path, query } = rawTarget(request.url ?? '')
      const isRecord = path.startsWith(RECORDS) && path !== RECORDS
      if (path !== CHANGES && path !== EVENTS_PATH && !isRecord) return false
      const { method = '' } = request
      try {
        const parameters = new URLSearchParams(query)
        if (method !== 'GET' && method !== 'HEAD') sendProblem(request, response, methodNotAllowed(method))
        else if (isRecord) sendRecordDates(options, request, response)
        else if (path === EVENTS_PATH) events.open(request, response, parameters)
        else
          void sendChanges(options, request, response, parameters).catch((error: unknown) =>
            failures.answer(error, request, response),
          )
      } catch (error) {
        failures.answer(error, request, response)
      }
      return true
    },
  }
}

/** Answers `/-/changes`; with differences on the reading thread, because of how long that takes. */
async function sendChanges(
  { served, access, now, reading }: FollowerOptions,
  request: IncomingMessage,
  response: ServerResponse,
  query: URLSearchParams,
): Promise<void> {
  const { reads, servedPin } = served
  if (!asksForDifferences(query)) {
    const parts = { reads, now: now(), latest: null, judge: () => access.judge(request) }
    const answer = answerChanges(parts, query)
    if ('status' in answer) return sendProblem(request, response, answer)
    return sendBody(request, response, Buffer.from(JSON.stringify(answer)))
  }
  const denied = access.judge(request)
  if (query.get('tag') && denied === null) served.originOf('catalog') // throws `stale`, or `not_ready` before the first
  const latest = reads.changes.readLatestLogged('osv')?.id ?? 0
  const asked = {
    differences: query.toString(),
    now: now(),
    served: servedPin?.stamp() ?? null,
    latest,
    denied,
  }
  const reply = await reading.ask(asked, askingOf(response), 'later')
  if (reply !== null) sendReply(request, response, reply)
}

function sendReply(request: IncomingMessage, response: ServerResponse, reply: ReadReply): void {
  if ('problem' in reply) return sendProblem(request, response, reply.problem)
  if ('body' in reply && reply.body !== null) sendBody(request, response, Buffer.from(reply.body))
}

function sendBody(request: IncomingMessage, response: ServerResponse, body: Buffer): void {
  respondUnstored({ request, response }, { body, coding: 'identity', vary: null, origin: null })
}

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
function sendRecordDates(
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
