import type { IncomingMessage, ServerResponse } from 'node:http'
import type { Endpoint } from '../config/webhooks.ts'
import { messageOf } from '../errors.ts'
import type { Logger } from '../log.ts'
import type { NewDelivery } from '../store/inbox-types.ts'
import {
  type Answer,
  type Outcome,
  ACCEPTED,
  CLOSING,
  CROWDED,
  ENCODED,
  KNOWN,
  NO_SECRET,
  TOO_SLOW,
  UNAUTHORIZED,
  UNAVAILABLE,
  WRONG_METHOD,
  malformed,
  sendReply,
  tooLarge,
} from './answers.ts'
import { type Bodies, type ReadBody, createBodies, discard } from './bodies.ts'
import { readEvent } from './event.ts'
import { handshake } from './handshake.ts'
import { valuesOf } from './headers.ts'
import { createSparingLog } from './sparing-log.ts'
import type { InboxThread } from './thread.ts'
import type { Verifier } from './verify.ts'

/** What a receiver is made from. */
export interface ReceiverOptions {
  readonly endpoints: readonly Endpoint[]
  readonly inbox: Pick<InboxThread, 'receive'>
  readonly verify: Verifier
  /** Whether there is a secret to verify with. */
  readonly isSetUp: () => boolean
  readonly isWanted: (type: string) => boolean
  readonly allowedOrigins: readonly string[]
  readonly maxBytes: number
  /** Unix milliseconds. */
  readonly now: () => number
  readonly log: Pick<Logger, 'debug' | 'warn'> | null
  /** Tells what became of each request; `reason` is one of few words. */
  readonly onOutcome?: (outcome: Outcome, reason: string) => void
  /** A row was stored that waits for a refresh. */
  readonly onStored?: () => void
  /** Time for a body, milliseconds; ten seconds when not given. */
  readonly deadlineMs?: number
}

/** Takes deliveries. */
export interface Receiver {
  /** Answers a request at one of the endpoints; false when its path is another. */
  readonly handle: (request: IncomingMessage, response: ServerResponse) => boolean
  /** From now on every delivery is a 503. */
  readonly close: () => void
}

/** What a request came to: its answer, the outcome for the counters, and why. */
interface Result {
  readonly answer: Answer
  readonly outcome: Outcome
  readonly reason: string
}

const DEADLINE_MS = 10_000
/** Bodies in memory at once, in units of the largest one. */
const LARGEST_AT_ONCE = 64

const result = (answer: Answer, outcome: Outcome, reason = ''): Result => ({
  answer,
  outcome,
  reason,
})

const internal = result(UNAVAILABLE, 'unavailable', 'internal')

/**
 * Raw body → verify → inbox → answer. Nothing is parsed before the signature is verified, and nothing is acknowledged
 * before it is on disk.
 */
export function createReceiver(options: ReceiverOptions): Receiver {
  const { endpoints, maxBytes, deadlineMs = DEADLINE_MS } = options
  const names = new Map(endpoints.map(({ name, path }) => [path, name]))
  const bodies = createBodies({ maxBytes, deadlineMs, maxTotal: LARGEST_AT_ONCE * maxBytes })
  const tell = createSparingLog(options.log, options.now)
  const state = { closing: false }
  const finish = (endpoint: string, { answer, outcome, reason }: Result): Answer => {
    options.onOutcome?.(outcome, reason)
    if (reason !== '') tell(reason, { endpoint, status: answer.status }, TEXTS[outcome])
    return answer
  }
  return {
    handle(request, response) {
      const endpoint = names.get(request.url?.split('?', 1)[0] ?? '')
      if (endpoint === undefined) return false
      const early = judgeHead(request, options, state.closing)
      if (early !== null && early.reason === 'too_large') {
        sendReply(request, response, finish(endpoint, early))
        discard(request)
        return true
      }
      // A body is read in any case: an answer before its end can be lost with the connection.
      const done = early === null ? receive(request, endpoint, options, bodies, state) : null
      void (done ?? bodies.read(request).then(() => early ?? internal))
        .catch((error: unknown): Result => {
          tell('internal', { err: error, endpoint }, 'a delivery could not be worked on')
          return internal
        })
        .then((done) => sendReply(request, response, finish(endpoint, done)))
      return true
    },
    close: () => void (state.closing = true),
  }
}

const TEXTS: Readonly<Record<Outcome, string>> = {
  new: 'a webhook was received',
  duplicate: 'a webhook was received again',
  ignored: 'a webhook of another type was ignored',
  malformed: 'a webhook is authentic but cannot be read; it is kept as a dead letter',
  unauthorized: 'a webhook was refused',
  unavailable: 'a webhook could not be taken; its sender was told to try again',
  refused: 'a request at a webhook endpoint was refused',
  handshake: 'a sender asked for permission to send webhooks',
  gone: 'a webhook broke off',
}

/** What can be answered without the body; null: it has to be read. */
function judgeHead(
  request: IncomingMessage,
  options: ReceiverOptions,
  closing: boolean,
): Result | null {
  const { method, rawHeaders } = request
  if (closing) return result(CLOSING, 'unavailable', 'closing')
  if (method === 'OPTIONS')
    return result(handshake(rawHeaders, options.allowedOrigins), 'handshake')
  if (method !== 'POST') return result(WRONG_METHOD, 'refused', 'method')
  const codings = valuesOf(rawHeaders, 'content-encoding').join(',').trim().toLowerCase()
  if (codings !== '' && codings !== 'identity') return result(ENCODED, 'refused', 'encoding')
  if (Number(request.headers['content-length'] ?? 0) > options.maxBytes)
    return result(tooLarge(options.maxBytes), 'refused', 'too_large')
  return options.isSetUp() ? null : result(NO_SECRET, 'unavailable', 'no_secret')
}

async function receive(
  request: IncomingMessage,
  endpoint: string,
  options: ReceiverOptions,
  bodies: Bodies,
  state: { readonly closing: boolean },
): Promise<Result> {
  const receivedAt = options.now()
  const read = await bodies.read(request)
  if (!('body' in read)) return unread(read.failed, options.maxBytes)
  if (state.closing) return result(CLOSING, 'unavailable', 'closing')
  const { body } = read
  const verdict = options.verify(request.rawHeaders, body)
  if (!verdict.ok) return result(UNAUTHORIZED, 'unauthorized', verdict.reason)
  const found = judge(body, options)
  const { state: rowState, type, target, reason } = found
  const { id: webhookId, dialect, label: secret } = verdict
  const row = { endpoint, webhookId, state: rowState, type, dialect, secret, target, reason, body }
  const done = bodies.hold(body.length)
  try {
    const times = { receivedAt, storedAt: options.now() }
    const outcome = await within(options.inbox.receive({ ...row, ...times }), STORE_MS)
    options.log?.debug({ endpoint, outcome, state: rowState, dialect, secret }, TEXTS.new)
    if (outcome === 'new' && rowState === 'pending') options.onStored?.()
    if (found.state === 'dead')
      return result(malformed(found.reason ?? ''), 'malformed', 'malformed')
    if (outcome === 'duplicate') return result(KNOWN, 'duplicate')
    return found.state === 'ignored' ? result(KNOWN, 'ignored') : result(ACCEPTED, 'new')
  } catch (error) {
    options.log?.debug({ endpoint }, messageOf(error))
    return result(UNAVAILABLE, 'unavailable', 'inbox')
  } finally {
    done()
  }
}

/** Longer than any healthy disk takes, shorter than senders wait: whatever is stored later is a duplicate then. */
const STORE_MS = 8_000

function within<T>(work: Promise<T>, ms: number): Promise<T> {
  const late = Promise.withResolvers<never>()
  const timer = setTimeout(() => late.reject(new Error('the inbox took too long')), ms)
  return Promise.race([work, late.promise]).finally(() => clearTimeout(timer))
}

type Failed = Extract<ReadBody, { failed: string }>['failed']

function unread(failed: Failed, maxBytes: number): Result {
  if (failed === 'too_large') return result(tooLarge(maxBytes), 'refused', 'too_large')
  if (failed === 'too_slow') return result(TOO_SLOW, 'refused', 'too_slow')
  if (failed === 'crowded') return result(CROWDED, 'unavailable', 'crowded')
  return result(TOO_SLOW, 'gone', 'gone')
}

type Judged = Pick<NewDelivery, 'state' | 'type' | 'target' | 'reason'>

/** What a verified body means for the mirror. */
function judge(body: Buffer, { isWanted }: ReceiverOptions): Judged {
  const event = readEvent(body)
  if ('malformed' in event)
    return { state: 'dead', type: null, target: null, reason: event.malformed }
  const { type, target } = event
  return isWanted(type)
    ? { state: 'pending', type, target, reason: null }
    : { state: 'ignored', type, target, reason: 'no pattern of webhooks.types fits its type' }
}
