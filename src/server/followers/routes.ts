import { SOURCES } from '../../base/domain/sources.ts'
import { problems, uncached } from '../contract/answers.ts'
import { CURSOR, KEY_OR_NONE, PURL, headersOf } from '../contract/components.ts'
import type { InputParameter, PathOperation } from '../contract/openapi.ts'
import { schemaOf } from '../contract/schema-ref.ts'

import type { FastifyPluginCallback } from 'fastify'
import type { IncomingMessage, ServerResponse } from 'node:http'
import type { Access } from '../access/access.ts'
import { answerChanges } from './changes.ts'
import { asksForDifferences } from './changes-query.ts'
import { type EventLog, type FindingsLog, createSnapshotLog } from './event-log.ts'
import { type Events, type EventsOptions, createEvents } from './events.ts'
import { sendProblem } from '../http/problems.ts'
import type { ServedSnapshot } from '../snapshot/served.ts'
import { isRefused, refuseStale } from '../snapshot/stale.ts'
import type { ResponseAccount } from '../../base/connections/responses.ts'
import type { RecordAnswer } from '../../base/reports/records.ts'
import { type RecordTagsSettings, readRecordTags, recordTagsMessage } from '../lookup/record-tags.ts'
import { respondUnstored } from '../http/response.ts'
import { askingOf } from '../reading/asking.ts'
import type { ReadReply } from '../reading/request.ts'
import type { ReadingThread } from '../reading/thread.ts'
import { rawTarget, readTarget } from '../http/request-target.ts'
import { describeDates, readUpstreamDates } from '../lookup/dates.ts'
import { findMissingRecord } from '../lookup/missing-record.ts'
import { isOnMirror } from '../../store/dates/reads.ts'

/** Bounds of the stream of events; the defaults when not given. */
type EventBounds = Pick<EventsOptions, 'heartbeatMs' | 'maxListeners'>

/** What other modules add to the stream of events, and get of it. */
export interface FollowedParts {
  /** Received events; none when not given. */
  readonly webhookLog?: EventLog
  /** Changed findings of tags; none when not given. */
  readonly findingsLog?: FindingsLog
  readonly bounds?: EventBounds
  /** Called with the last served entry of the change log, at first and whenever it changes, or signatures come to something else. */
  readonly onServed?: (log: number) => void
  /** Called with whether the findings of tags are served, at first and whenever that changes. */
  readonly onFindingsServed?: (isServed: boolean) => void
}

/** What the pages for followers are made from. */
interface FollowerOptions {
  readonly served: Pick<ServedSnapshot, 'reads' | 'servedPin' | 'originOf' | 'knownOrigin'>
  readonly access: Access
  readonly reading: ReadingThread
  /** Returns who sent a request. */
  readonly holderOf: ResponseAccount['holderOf']
  readonly followed: FollowedParts
  /** Decides whether tags are judged, and where. */
  readonly config: RecordTagsSettings
  /** Unix milliseconds. */
  readonly now: () => number
}

/** The pages for those who follow the mirror: `/-/changes`, `/-/events` and `/-/records/{id}`. */
interface FollowerRoutes extends Pick<Events, 'look' | 'close'> {
  readonly plugin: FastifyPluginCallback
}

/** Sources without which the findings of tags are not served. */
const FINDINGS_OF = ['osv', 'catalog'] as const

/** Creates the routes. They report the served snapshot only, so every reported change is already readable. */
export function createFollowerRoutes(options: FollowerOptions): FollowerRoutes {
  const { served, access, followed } = options
  const { reads } = served
  const snapshots = createSnapshotLog(reads)
  const servesFindings = (): boolean => !FINDINGS_OF.some((source) => isRefused(served.knownOrigin(source)))
  const addressOf = (request: IncomingMessage): string => options.holderOf(request).address()
  const logs = { webhooks: followed.webhookLog ?? null, findings: followed.findingsLog ?? null }
  const events = createEvents({ ...followed.bounds, ...logs, snapshots, servesFindings, access, addressOf })
  let lastServed = ''
  let servedFindings: boolean | null = null
  return {
    look() {
      events.look()
      const last = snapshots.last()
      const isServedNow = `${last} ${reads.catalog.readVexMark()}`
      if (isServedNow !== lastServed) followed.onServed?.(last)
      lastServed = isServedNow
      const isServed = servesFindings()
      if (isServed !== servedFindings) followed.onFindingsServed?.(isServed)
      servedFindings = isServed
    },
    close: () => events.close(),
    plugin(app, _options, done) {
      const on = (answer: FollowerAnswer) => app.onNode((request, response) => answer(options, request, response))
      const openEvents: FollowerAnswer = (_options, request, response) =>
        events.open(request, response, queryOf(request))
      app.get('/-/changes', { schema: FOLLOWER_CONTRACTS['/-/changes'], config: { listed: 'own' } }, on(sendChanges))
      app.get('/-/events', { schema: FOLLOWER_CONTRACTS['/-/events'], config: { listed: 'own' } }, on(openEvents))
      const record = '/-/records/{id}'
      const config = { path: record, listed: 'own' } as const
      app.get('/-/records/*', { schema: FOLLOWER_CONTRACTS[record], config }, on(sendRecordDates))
      done()
    },
  }
}

/** Answers one of the paths; what it throws is the answer. */
type FollowerAnswer = (options: FollowerOptions, request: IncomingMessage, response: ServerResponse) => unknown

/** Answers `/-/changes`; with differences on the reading thread, because of how long that takes. */
async function sendChanges(
  { served, access, now, reading }: FollowerOptions,
  request: IncomingMessage,
  response: ServerResponse,
): Promise<void> {
  const query = queryOf(request)
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

function queryOf({ url = '' }: IncomingMessage): URLSearchParams {
  return new URLSearchParams(rawTarget(url).query)
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
const NOT_HERE = 'this record is not on the mirror any more: tags are not judged by it'
const NO_RECORD =
  'no snapshot of this mirror had a record of this id; "patchmirror show" finds one by its other ids, such as a CVE'

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
  const id = readTarget(request.url ?? '').path.slice('/-/records/'.length)
  const denied = access.judge(request)
  if (denied !== null && request.headers.authorization !== undefined) return sendProblem(request, response, denied)
  const dates = reads.dates.readDates(id)
  if (dates === null) {
    const missing = findMissingRecord(reads, id)
    const message = missing?.message ?? NO_RECORD
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
  const known = (): ReturnType<typeof readRecordTags> =>
    isOnMirror(dates) ? readRecordTags(config, reads, id, refuseOld) : NOT_HERE
  const found = denied === null ? known() : WITHOUT_KEY
  const more = { upstream: readUpstreamDates(reads, id), ...age, ...recordTagsMessage(found) }
  const answer: RecordAnswer = { ...describeDates(dates), ...more }
  const body = Buffer.from(JSON.stringify(answer))
  respondUnstored({ request, response }, { body, coding: 'identity', vary: null, origin: null })
}

const OF_MIRROR = ['Mirror']
const TEXT = { type: 'string' }

const SOURCE: InputParameter = {
  name: 'source',
  in: 'query',
  description: 'Only this source.',
  schema: { type: 'string', enum: [...SOURCES, ''] },
}

const asked = (name: string, description: string, schema: InputParameter['schema'] = TEXT): InputParameter => ({
  name,
  in: 'query',
  description,
  schema,
})

const NOT_EMPTY = { type: 'string', minLength: 1 }

/** The paths for those who follow the mirror. */
const FOLLOWER_CONTRACTS = {
  '/-/changes': {
    summary: 'What changed since a snapshot',
    description: 'The public sources are open; catalog and identity take a key, and so does `tag`.',
    tags: OF_MIRROR,
    parameters: [
      {
        name: 'since',
        in: 'query',
        required: true,
        description: 'A snapshot or its number, or a time in UTC: 2026-01-31, with a time, yesterday, monday, 7d.',
        schema: NOT_EMPTY,
      },
      SOURCE,
      asked('detail', 'With `differences`: what changed in each record.', {
        enum: ['names', 'differences'],
        default: 'names',
      }),
      asked('ecosystem', 'Records about packages of this ecosystem alone, with what changed in them.', NOT_EMPTY),
      asked('purl', 'Records about this package alone, whatever its version.', PURL),
      asked('tag', 'Records about packages in the SBOM of this tag alone.', NOT_EMPTY),
      asked('limit', 'Names on a page.', { type: 'integer', minimum: 1, maximum: 10_000, default: 1_000 }),
      asked('after', 'The value of `next` of the page before.', CURSOR),
    ],
    responses: {
      200: uncached('A page of changes.', schemaOf('Changes')),
      ...problems('message', 400, 401, 404, 429, 500, 503),
    },
    security: KEY_OR_NONE,
  },
  '/-/events': {
    summary: 'A stream of published snapshots and received webhooks',
    description: 'Server-sent events. Without a key public snapshots alone.',
    tags: OF_MIRROR,
    parameters: [
      SOURCE,
      {
        name: 'Last-Event-ID',
        in: 'header',
        schema: TEXT,
        description: 'The stream continues behind this event.',
      },
    ],
    responses: {
      200: {
        description: 'Events `snapshot`, `webhook`, `findings`, `reset`; a comment every 15 seconds.',
        headers: headersOf('Cache-Control', 'X-Accel-Buffering'),
        content: { 'text/event-stream': { schema: TEXT } },
      },
      ...problems('message', 400, 401, 429, 500, 503),
    },
    security: KEY_OR_NONE,
  },
  '/-/records/{id}': {
    summary: 'Since when a record is known here',
    description: 'Also of a removed record; with a key also its tags.',
    tags: OF_MIRROR,
    parameters: [
      {
        name: 'id',
        in: 'path',
        required: true,
        description: 'The id of a record.',
        schema: TEXT,
      },
    ],
    responses: {
      200: uncached('The dates.', schemaOf('RecordDates')),
      ...problems('message', 400, 401, 404, 429, 500, 503),
    },
    security: KEY_OR_NONE,
  },
} as const satisfies Readonly<Record<string, PathOperation>>
