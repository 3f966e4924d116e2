import type { IncomingMessage, ServerResponse } from 'node:http'
import type { Endpoint } from '../../config/kinds/webhooks.ts'
import type { Share } from '../../base/connections/account.ts'
import { bodyTimeMs } from '../../base/connections/bodies.ts'
import { shareFor } from '../../base/connections/responses.ts'
import { messageOf } from '../../base/errors.ts'
import type { Logger } from '../../base/log.ts'
import { createDue, within } from '../../base/pacing.ts'
import {
  ACCEPTED,
  CLOSING,
  FULL,
  KNOWN,
  type ReceiptOutcome,
  UNAVAILABLE,
  type WebhookResponse,
  sendReply,
  CROWDED,
  ENCODED,
  ENDPOINT_METHODS,
  NO_SECRET,
  TOO_MANY_PIECES,
  TOO_SLOW,
  UNAUTHORIZED,
  WRONG_METHOD,
  notReady,
  tooLarge,
} from './responses.ts'
import { type Bodies, createBodies, discardRequest, type DeliveryFault } from './body-reader.ts'
import { MAX_PENDING, type NewDelivery, type Received } from '../../store/webhooks/inbox.ts'
import type { InboxThread } from '../inbox/thread.ts'
import type { Verifier } from './signature.ts'
import { type TypeFilter, parseBody } from './event.ts'
import { valuesOf } from './headers.ts'

/** What a receiver is made from. */
export interface ReceiverOptions extends Rules {
  readonly endpoints: readonly Endpoint[]
  readonly inbox: Pick<InboxThread, 'receive'>
  readonly verify: Verifier
  /** Unix milliseconds. */
  readonly now: () => number
  readonly log: Pick<Logger, 'debug' | 'warn'> | null
  /** Count the outcome of each request. */
  readonly counters: readonly OutcomeCounter[]
  /** Are notified of each stored row that waits for a refresh. */
  readonly followers: readonly DeliveryFollower[]
  /** Time in which more than so many bytes of a body must have come, milliseconds; `bodyTimeMs` when not given. */
  readonly bodyTimeOf?: (received: number) => number
}

/** Counts outcomes; `reason` is one of a few fixed words. */
interface OutcomeCounter {
  readonly countWebhook: (outcome: ReceiptOutcome, reason: string) => void
}

/** Acts on stored deliveries. */
export interface DeliveryFollower {
  /** A delivery was stored that waits for a refresh. */
  readonly arrived: () => void
}

/** Bodies in memory at once, in units of the largest one. */
const LARGEST_AT_ONCE = 64

const TEXTS: Readonly<Record<ReceiptOutcome, string>> = {
  new: 'a webhook was received',
  altered: 'a webhook was received again with another body',
  duplicate: 'a webhook was received again',
  ignored: 'a webhook of another type was ignored',
  unauthorized: 'a webhook was refused',
  unavailable: 'a webhook could not be stored; its sender was asked to retry',
  refused: 'a request at a webhook endpoint was refused',
  handshake: 'a sender asked for permission to send webhooks',
  gone: 'a webhook broke off',
}

/**
 * Creates the receiver: head → body → signature → meaning → inbox → announcement → answer. Nothing is parsed before the
 * signature is verified, and nothing is acknowledged before it is on disk.
 */
export function createReceiver(options: ReceiverOptions) {
  const { endpoints, maxBytes, bodyTimeOf: timeOf = bodyTimeMs } = options
  const names = new Map(endpoints.map(({ name, path }) => [path, name]))
  const bodies = createBodies({ maxBytes, timeOf, maxTotal: LARGEST_AT_ONCE * maxBytes })
  const logRejection = createThrottledLog(options.log, options.now)
  const state = { closing: false }
  const finish = (endpoint: string, { answer, outcome, reason, detail }: Result): WebhookResponse => {
    for (const counter of options.counters) counter.countWebhook(outcome, reason)
    const fields = { endpoint, status: answer.status, ...(detail !== undefined && { detail }) }
    if (reason !== '') logRejection(reason, fields, TEXTS[outcome])
    return answer
  }
  const resultOf = async (request: IncomingMessage, endpoint: string, share: Share): Promise<Result> => {
    try {
      return await receive(request, endpoint, { options, bodies, state, share })
    } catch (error) {
      logRejection('internal', { err: error, endpoint }, 'a delivery could not be worked on')
      return result(UNAVAILABLE, 'unavailable', 'internal')
    }
  }
  const serve = async (request: IncomingMessage, response: ServerResponse, endpoint: string) => {
    const share = shareFor(response)
    const result = await resultOf(request, endpoint, share)
    share.release() // the body is stored or let go; what is not sent of the answer counts from here on
    sendReply(request, response, finish(endpoint, result))
  }
  return {
    /** Answers a request at one of the endpoints; false when its path is another. */
    handle: (request: IncomingMessage, response: ServerResponse): boolean => {
      const endpoint = names.get(request.url?.split('?', 1)[0] ?? '')
      if (endpoint === undefined) return false
      serve(request, response, endpoint).catch(() => response.destroy())
      return true
    },
    /** From now on every delivery is a 503. */
    close: (): void => void (state.closing = true),
  }
}

/** What one request is worked on with. */
interface Reception {
  readonly options: ReceiverOptions
  readonly bodies: Bodies
  readonly state: { readonly closing: boolean }
  /** What its bytes count in until it is answered. */
  readonly share: Share
}

/** Returns the result of one request, after its delivery was stored and announced. */
async function receive(
  request: IncomingMessage,
  endpoint: string,
  { options, bodies, state, share }: Reception,
): Promise<Result> {
  const receivedAt = options.now()
  const early = judgeHead(request, options, state.closing)
  if (early?.reason === 'too_large') {
    discardRequest(request)
    return early
  }
  // A body is read in any case: an answer before its end can be lost with the connection.
  const body = await bodies.read(request, share)
  if (early !== null) return early
  if (typeof body === 'string') return unread(body, options.maxBytes)
  if (state.closing) return result(CLOSING, 'unavailable', 'closing')
  const verified = options.verify(request.rawHeaders, body)
  if (!verified.ok) return unauthentic(request.rawHeaders, verified.reason)
  const { id: webhookId, dialect, label: secret } = verified
  const meaning = judgeBody(body, options)
  const sender = { endpoint, webhookId, dialect, secret, receivedAt }
  const delivery = { ...sender, ...meaning, body, storedAt: options.now() }
  const done = bodies.reserve(body.length)
  try {
    const outcome = await within(storeAndAnnounce(delivery, options), STORE_MS, tooLate)
    const { state } = delivery
    options.log?.debug({ endpoint, outcome, state, dialect, secret }, TEXTS.new)
    return storedResult(outcome, state)
  } catch (error) {
    return { ...result(UNAVAILABLE, 'unavailable', 'inbox'), detail: messageOf(error) }
  } finally {
    done()
  }
}

/** Stores a delivery and then announces it, also when that is too late for the answer: it needs its refresh. */
async function storeAndAnnounce(delivery: NewDelivery, { inbox, followers }: ReceiverOptions): Promise<Received> {
  const outcome = await inbox.receive(delivery)
  const isStored = outcome === 'new' || outcome === 'altered'
  if (isStored && delivery.state === 'pending') for (const follower of followers) follower.arrived()
  return outcome
}

function storedResult(outcome: Received, state: NewDelivery['state']): Result {
  if (outcome === 'full') return { ...result(FULL, 'unavailable', 'full'), detail: FULL_TEXT }
  if (outcome === 'duplicate') return result(KNOWN, 'duplicate')
  if (outcome === 'altered') return result(ACCEPTED, 'altered')
  return state === 'ignored' ? result(KNOWN, 'ignored') : result(ACCEPTED, 'new')
}

const FULL_TEXT = `as many deliveries are pending as are kept (${MAX_PENDING}); "patchmirror webhooks inbox" shows why they wait`

/** Time limit for storing a delivery, milliseconds: longer than a healthy disk takes, shorter than senders wait. */
const STORE_MS = 8_000

function tooLate(): never {
  throw new Error('the inbox took too long')
}

/** Minimum interval between log lines for one reason, milliseconds: a flood must not fill a disk. */
const EVERY_MS = 10_000

/** Logs a line for a reason, or counts it for the next line with the same reason. */
type ThrottledLog = (reason: string, fields: object, message: string) => void

/** Creates a log with at most one line per reason and interval. Reasons are a fixed set, never a sender's text. */
function createThrottledLog(log: Pick<Logger, 'warn'> | null, now: () => number): ThrottledLog {
  const isDue = createDue(EVERY_MS, now)
  const alike = new Map<string, number>()
  return (reason, fields, message) => {
    const more = alike.get(reason) ?? 0
    alike.set(reason, more + 1)
    if (!isDue(reason)) return
    alike.set(reason, 0)
    log?.warn({ ...fields, reason, ...(more > 0 && { alike: more }) }, message)
  }
}

/** What a request came to: its answer, the outcome for the counters, and why. */
interface Result {
  readonly answer: WebhookResponse
  readonly outcome: ReceiptOutcome
  readonly reason: string
  /** More for the log, in our own words. */
  readonly detail?: string
}

/** Puts a result together; `reason` is one of few words, and empty where there is nothing to explain. */
const result = (answer: WebhookResponse, outcome: ReceiptOutcome, reason = ''): Result => ({
  answer,
  outcome,
  reason,
})

/** By what requests are judged. */
interface Rules {
  /** Whether there is a secret to verify with. */
  readonly isSetUp: () => boolean
  /** Why deliveries are not taken now; null: they are. */
  readonly refusal?: () => string | null
  readonly isWanted: TypeFilter
  readonly allowedOrigins: readonly string[]
  readonly maxBytes: number
}

/** What can be answered without the body; null: it has to be read. */
function judgeHead(request: IncomingMessage, rules: Rules, closing: boolean): Result | null {
  const { method, rawHeaders } = request
  if (closing) return result(CLOSING, 'unavailable', 'closing')
  if (method === 'OPTIONS') return result(handshake(rawHeaders, rules.allowedOrigins), 'handshake')
  if (method !== 'POST') return result(WRONG_METHOD, 'refused', 'method')
  if (Number(request.headers['content-length'] ?? 0) > rules.maxBytes)
    return result(tooLarge(rules.maxBytes), 'refused', 'too_large')
  if (!rules.isSetUp()) return result(NO_SECRET, 'unavailable', 'no_secret')
  const refusal = rules.refusal?.() ?? null
  return refusal === null ? null : result(notReady(refusal), 'unavailable', 'not_leading')
}

/** Reports whether the headers announce a compressed body. */
function isEncoded(rawHeaders: readonly string[]): boolean {
  const codings = valuesOf(rawHeaders, 'content-encoding').join(',').trim().toLowerCase()
  return codings !== '' && codings !== 'identity'
}

/** The result for a body whose signature does not fit: a compressed one may have been signed before, and can be sent plain. */
function unauthentic(rawHeaders: readonly string[], reason: string): Result {
  return isEncoded(rawHeaders) ? result(ENCODED, 'refused', 'encoding') : result(UNAUTHORIZED, 'unauthorized', reason)
}

/** The result for a body that could not be read. */
function unread(fault: DeliveryFault, maxBytes: number): Result {
  if (fault === 'too_large') return result(tooLarge(maxBytes), 'refused', fault)
  if (fault === 'too_many_pieces') return result(TOO_MANY_PIECES, 'refused', fault)
  if (fault === 'late') return result(TOO_SLOW, 'refused', 'too_slow')
  if (fault === 'crowded') return result(CROWDED, 'unavailable', fault)
  return result(TOO_SLOW, 'gone', 'gone')
}

type Judged = Pick<NewDelivery, 'state' | 'type' | 'target' | 'reason'>

/** Returns what a verified body means for the mirror: in any form, it causes a refresh. */
function judgeBody(body: Buffer, { isWanted }: Rules): Judged {
  const { type, target, wanted } = parseBody(body, isWanted)
  return wanted
    ? { state: 'pending', type, target, reason: null }
    : { state: 'ignored', type, target, reason: 'no pattern of webhooks.types fits its type' }
}

/**
 * Answers OPTIONS (CloudEvents web hooks 1.0, section 4): a sender whose name is allow-listed receives permission to
 * send. Its callback URL is never requested.
 */
function handshake(rawHeaders: readonly string[], allowed: readonly string[]): WebhookResponse {
  const headers = { Allow: ENDPOINT_METHODS }
  const origins = valuesOf(rawHeaders, 'webhook-request-origin')
  const [origin = ''] = origins
  const listed =
    origins.length === 1 ? allowed.find((one) => one === '*' || one.toLowerCase() === origin.toLowerCase()) : undefined
  // What is sent back is the setting's text, never the request's.
  return listed === undefined
    ? { status: 200, headers }
    : {
        status: 200,
        headers: { ...headers, 'WebHook-Allowed-Origin': listed, 'WebHook-Allowed-Rate': '*' },
      }
}
