import type { IncomingMessage, ServerResponse } from 'node:http'
import { type Problem, sendProblem } from '../../server/http/problems.ts'
import { namedValue, rawTarget } from '../../server/http/request-target.ts'
import { respondUnstored } from '../../server/http/response.ts'
import { type RequestFault, readRequestBody } from '../../base/connections/bodies.ts'
import type { NodeAnswer } from '../../server/app.ts'
import type { ServerPlugin, ServerTools } from '../../server/plugin.ts'
import type { PinRequest } from '../../server/reading/request.ts'
import { askingOf } from '../../server/reading/asking.ts'
import { followPin } from '../../server/reading/thread.ts'
import type { Config } from '../../config/schema.ts'
import { shareFor } from '../../base/connections/responses.ts'
import { MirrorError } from '../../base/errors.ts'
import { whyNoRelease } from './judging/components.ts'
import { type RequestThread, createRequestThread } from '../../base/threads/request-thread.ts'
import { workerFile } from '../../base/threads/worker-file.ts'
import type { MatchSnapshot } from './result.ts'
import { problems } from '../../server/contract/answers.ts'
import { KEY_OR_NONE, MIRRORED, headersOf } from '../../server/contract/components.ts'
import type { PathOperation } from '../../server/contract/openapi.ts'

const PATH = '/-/match'

/** What the thread that judges SBOMs is started with. */
export interface MatchData {
  readonly config: Config
}

/** An SBOM to judge. */
export interface MatchMessage {
  /** The whole of its buffer. */
  readonly body: Uint8Array<ArrayBuffer>
  /** Unix milliseconds. */
  readonly now: number
  /** Stamp of the served snapshots, where newer ones are kept back; null: the newest. */
  readonly served: string | null
  /** Whether the client may read the catalog, and so the mirrored VEX. */
  readonly catalog: boolean
  /** The distribution and release of components that name none; null: it is not known. */
  readonly distro: string | null
}

/** What became of it; `body`: the result as JSON. */
export type MatchReply =
  | {
      readonly body: Uint8Array
      readonly snapshot: Pick<MatchSnapshot, 'id' | 'asOf' | 'stale'>
    }
  | { readonly moved: true }

/** Most bytes of an SBOM. The parser of JSON cannot be interrupted: 16 MiB keep it for seconds, twice as much for a minute. */
const MAX_BYTES = 16 * 2 ** 20
/** SBOMs that may wait for the thread. */
const MAX_WAITING = 16
/** An SBOM at the bound, parsed, and the findings of one answer. */
const LIMITS = { maxYoungGenerationSizeMb: 32, maxOldGenerationSizeMb: 1000 }

type MatchThread = RequestThread<MatchMessage | PinRequest, MatchReply>

/**
 * Creates `POST /-/match`: the vulnerabilities of an SBOM's components. It takes no key, as the query API takes none; with a
 * key the mirrored VEX is applied. A thread of its own answers, which starts with the first request.
 */
export const matchRoute: ServerPlugin = (app, tools, done) => {
  const { config } = tools
  const file = workerFile('match.worker', import.meta.url)
  const data: MatchData = { config }
  const thread: MatchThread = createRequestThread({
    file,
    data,
    limits: LIMITS,
    unref: true,
    maxWaiting: MAX_WAITING,
    what: 'SBOMs',
  })
  tools.atEnd(() => thread.close())
  if (config.views.query) followPin(thread, tools.served.servedPin)
  const answer: NodeAnswer = (request, response) => answerMatch({ tools, thread, config }, request, response)
  app.post(PATH, { schema: MATCH_CONTRACT, config: { listed: 'own' }, ...app.onUnreadBody(answer) })
  app.answerRest((request, response) => {
    if (rawTarget(request.url ?? '').path !== PATH) return false
    refuse(request, response, config.views.query ? notPosted(request.method ?? '') : SWITCHED_OFF)
    return true
  })
  done()
}

interface RouteParts extends MatchData {
  readonly tools: ServerTools
  readonly thread: MatchThread
}

async function answerMatch(
  { tools, thread, config }: RouteParts,
  request: IncomingMessage,
  response: ServerResponse,
): Promise<void> {
  if (!config.views.query) return sendProblem(request, response, SWITCHED_OFF)
  const denied = tools.access.judge(request)
  if (denied !== null && hasCredential(request)) return refuse(request, response, denied)
  const distro = distroIn(request)
  const share = shareFor(response)
  const body = await readRequestBody(request, { bytes: MAX_BYTES, share })
  if (body === 'gone') return void response.destroy()
  if (typeof body === 'string') return refuse(request, response, FAULTS[body])
  const served = tools.served.servedPin?.stamp() ?? null
  const message = {
    body: new Uint8Array(body),
    now: tools.now(),
    served,
    catalog: denied === null,
    distro,
  } // in a buffer of its own
  const leave = (): void => void (message.body = NOTHING) // the queue keeps the message until its turn
  response.once('close', leave)
  share.queues(() => {
    leave()
    refuse(request, response, FAULTS.crowded)
  })
  const reply = await thread.ask(message, askingOf(response))
  response.off('close', leave)
  if (reply === null || response.writableEnded) return
  share.release() // the answer counts from here on
  send(reply, request, response)
}

/** The release that the client names. Throws `bad_request` for one that is not known here. */
function distroIn({ url = '' }: IncomingMessage): string | null {
  const distro = namedValue(new URLSearchParams(rawTarget(url).query), 'distro')
  const why = distro === null ? null : whyNoRelease(distro)
  if (why === null) return distro
  throw new MirrorError('bad_request', `distro=… ${why}`)
}

const NOTHING = new Uint8Array(0)

function send(reply: MatchReply, request: IncomingMessage, response: ServerResponse): void {
  if (response.destroyed || 'moved' in reply) return
  const { id, asOf, stale } = reply.snapshot
  const limit = stale === null ? {} : { stale: { limit: stale, refused: false } }
  const origin = { source: 'osv' as const, snapshot: id, asOf, version: id, ...limit }
  const body = Buffer.from(reply.body)
  respondUnstored({ request, response }, { body, coding: 'identity', vary: null, origin })
}

const SWITCHED_OFF: Problem = {
  status: 404,
  error: 'not_found',
  message: 'this mirror judges no SBOMs: views.serve has no query',
}

type Refusal = Pick<Problem, 'status' | 'error' | 'message' | 'headers'>

function hasCredential({ headers }: IncomingMessage): boolean {
  return (headers.authorization ?? '').trim() !== ''
}

function notPosted(method: string): Refusal {
  const message = `${method} is not allowed here: send an SBOM by POST`
  return { status: 405, error: 'method_not_allowed', message, headers: { Allow: 'POST' } }
}

/** Sends a refusal; the rest of the body is not read, so the connection ends with it. */
function refuse(request: IncomingMessage, response: ServerResponse, refusal: Refusal): void {
  const headers = { Connection: 'close', ...refusal.headers }
  sendProblem(request, response, { ...refusal, headers })
}

const FAULTS: Readonly<Record<Exclude<RequestFault, 'gone'>, Refusal>> = {
  too_large: {
    status: 413,
    error: 'too_large',
    message: `the SBOM is larger than ${MAX_BYTES / 2 ** 20} MiB: leave files out of it, or use "patchmirror match"`,
  },
  late: { status: 408, error: 'timeout', message: 'the SBOM did not come in time' },
  encoded: {
    status: 415,
    error: 'unsupported_encoding',
    message: 'the request has a Content-Encoding: send the SBOM as it is',
  },
  crowded: {
    status: 503,
    error: 'not_ready',
    headers: { 'Retry-After': '30' },
    message: 'too many SBOMs and answers wait for their clients: try again later',
  },
}

const TAGS = ['Scanners']

/** What was found in an SBOM. */
const MATCH = {
  type: 'object',
  required: [
    'sbom',
    'snapshot',
    'counts',
    'findings',
    'suppressed',
    'vex',
    'patches',
    'notJudged',
    'withoutRecords',
    'gaps',
  ],
  properties: {
    sbom: { type: 'object' },
    counts: { type: 'object' },
    snapshot: { type: 'object', required: ['id', 'asOf'] },
    findings: {
      type: 'array',
      items: {
        type: 'object',
        required: ['id', 'severity', 'component', 'fixed', 'patches', 'patchCount'],
      },
    },
    suppressed: {
      type: 'array',
      items: { type: 'object', required: ['id', 'severity', 'component', 'vex'] },
    },
    vex: { type: 'object', required: ['notApplied', 'documents', 'unread'] },
    patches: { type: 'object', required: ['notApplied', 'entries'] },
    notJudged: { type: 'array', items: { type: 'object', required: ['code', 'reason'] } },
    withoutRecords: { type: 'array', items: { type: 'string' } },
  },
}

/** A list of objects; null is read as none. */
const objects = { type: ['array', 'null'], items: { type: 'object' } }

/** What an SBOM has at least; one within an envelope is described in words. */
const SBOM = {
  type: 'object',
  anyOf: [
    {
      required: ['bomFormat', 'specVersion'],
      properties: {
        bomFormat: { const: 'CycloneDX' },
        specVersion: { pattern: '^1.[2-7]$' },
        components: objects,
      },
    },
    {
      required: ['spdxVersion'],
      properties: {
        spdxVersion: { pattern: '^SPDX-2.[1-3]$' },
        packages: objects,
      },
    },
  ],
}

/** What takes an SBOM. */
const MATCH_CONTRACT: PathOperation = {
  summary: 'Vulnerabilities of an SBOM',
  description:
    'CycloneDX 1.2 to 1.7, SPDX 2.1 to 2.3 or 3.0 in JSON, also in a DSSE envelope, unverified. With a local key, VEX is applied.',
  tags: TAGS,
  parameters: [
    {
      name: 'distro',
      in: 'query',
      description: 'Such as debian-12.',
      schema: { type: 'string', minLength: 1 },
    },
  ],
  requestBody: {
    description: 'At most 16 MiB.',
    required: true,
    content: {
      'application/json': { schema: SBOM },
      'application/vnd.cyclonedx+json': { schema: SBOM },
      'application/spdx+json': { schema: SBOM },
    },
  },
  responses: {
    200: {
      description: 'The findings.',
      headers: headersOf('Cache-Control', ...MIRRORED),
      content: { 'application/json': { schema: MATCH } },
    },
    ...problems('message', 400, 401, 404, 408, 413, 415, 429, 500, 503),
  },
  security: KEY_OR_NONE, // with a key, VEX is applied
}
