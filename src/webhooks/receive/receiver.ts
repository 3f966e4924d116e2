import type { IncomingMessage, ServerResponse } from 'node:http'
import type { Endpoint } from '../../config/kinds/webhooks.ts'
import { messageOf } from '../../core/errors.ts'
import type { Logger } from '../../core/log.ts'
import {
  type WebhookResponse,
  type ReceiptOutcome,
  ACCEPTED,
  CLOSING,
  FULL,
  KNOWN,
  UNAVAILABLE,
  sendReply,
} from './responses.ts'
import { type Bodies, createBodies, discardRequest } from './body-reader.ts'
import {
  type Result,
  type Rules,
  judgeBody,
  judgeHead,
  result,
  unauthentic,
  unread,
} from './validation.ts'
import { createThrottledLog } from '../../core/throttled-log.ts'
import type { InboxThread } from '../inbox/thread.ts'
import type { Verifier } from './signature.ts'

/** What a receiver is made from. */
export interface ReceiverOptions extends Rules {
  readonly endpoints: readonly Endpoint[]
  readonly inbox: Pick<InboxThread, 'receive'>
  readonly verify: Verifier
  /** Unix milliseconds. */
  readonly now: () => number
  readonly log: Pick<Logger, 'debug' | 'warn'> | null
  /** Called with the outcome of each request; `reason` is one of a few fixed words. */
  readonly onOutcome?: (outcome: ReceiptOutcome, reason: string) => void
  /** A row was stored that waits for a refresh. */
  readonly onStored?: () => void
  /** Time for a body, milliseconds; ten seconds when not given. */
  readonly deadlineMs?: number
}

/** Takes deliveries. */
interface Receiver {
  /** Answers a request at one of the endpoints; false when its path is another. */
  readonly handle: (request: IncomingMessage, response: ServerResponse) => boolean
  /** From now on every delivery is a 503. */
  readonly close: () => void
}

const DEADLINE_MS = 10_000
/** Bodies in memory at once, in units of the largest one. */
const LARGEST_AT_ONCE = 64

const internal = result(UNAVAILABLE, 'unavailable', 'internal')

const TEXTS: Readonly<Record<ReceiptOutcome, string>> = {
  new: 'a webhook was received',
  duplicate: 'a webhook was received again',
  ignored: 'a webhook of another type was ignored',
  unauthorized: 'a webhook was refused',
  unavailable: 'a webhook could not be stored; its sender was asked to retry',
  refused: 'a request at a webhook endpoint was refused',
  handshake: 'a sender asked for permission to send webhooks',
  gone: 'a webhook broke off',
}

/**
 * Raw body → verify → inbox → answer. Nothing is parsed before the signature is verified, and nothing is acknowledged
 * before it is on disk.
 */
export function createReceiver(options: ReceiverOptions): Receiver {
  const { endpoints, maxBytes, deadlineMs = DEADLINE_MS } = options
  const names = new Map(endpoints.map(({ name, path }) => [path, name]))
  const bodies = createBodies({ maxBytes, deadlineMs, maxTotal: LARGEST_AT_ONCE * maxBytes })
  const logRejection = createThrottledLog(options.log, options.now)
  const state = { closing: false }
  const finish = (
    endpoint: string,
    { answer, outcome, reason, detail }: Result,
  ): WebhookResponse => {
    options.onOutcome?.(outcome, reason)
    const fields = { endpoint, status: answer.status, ...(detail !== undefined && { detail }) }
    if (reason !== '') logRejection(reason, fields, TEXTS[outcome])
    return answer
  }
  return {
    handle(request, response) {
      const endpoint = names.get(request.url?.split('?', 1)[0] ?? '')
      if (endpoint === undefined) return false
      const early = judgeHead(request, options, state.closing)
      if (early !== null && early.reason === 'too_large') {
        sendReply(request, response, finish(endpoint, early))
        discardRequest(request)
        return true
      }
      // A body is read in any case: an answer before its end can be lost with the connection.
      const done = early === null ? receive(request, endpoint, options, bodies, state) : null
      void (done ?? bodies.read(request).then(() => early ?? internal))
        .catch((error: unknown): Result => {
          logRejection('internal', { err: error, endpoint }, 'a delivery could not be worked on')
          return internal
        })
        .then((done) => sendReply(request, response, finish(endpoint, done)))
        .catch(() => response.destroy())
      return true
    },
    close: () => void (state.closing = true),
  }
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
  const verified = options.verify(request.rawHeaders, body)
  if (!verified.ok) return unauthentic(request.rawHeaders, verified.reason)
  const found = judgeBody(body, options)
  const { state: rowState, type, target, reason } = found
  const { id: webhookId, dialect, label: secret } = verified
  const row = { endpoint, webhookId, state: rowState, type, dialect, secret, target, reason, body }
  const done = bodies.reserve(body.length)
  try {
    const times = { receivedAt, storedAt: options.now() }
    const stored = options.inbox.receive({ ...row, ...times }).then((outcome) => {
      // Also when it is too late for the answer: what is on disk is to be refreshed for.
      if (outcome === 'new' && rowState === 'pending') options.onStored?.()
      return outcome
    })
    const outcome = await within(stored, STORE_MS)
    options.log?.debug({ endpoint, outcome, state: rowState, dialect, secret }, TEXTS.new)
    if (outcome === 'full') return { ...result(FULL, 'unavailable', 'full'), detail: FULL_TEXT }
    if (outcome === 'duplicate') return result(KNOWN, 'duplicate')
    return found.state === 'ignored' ? result(KNOWN, 'ignored') : result(ACCEPTED, 'new')
  } catch (error) {
    return { ...result(UNAVAILABLE, 'unavailable', 'inbox'), detail: messageOf(error) }
  } finally {
    done()
  }
}

const FULL_TEXT = 'as many are pending as webhooks.maxPending allows'

/** Time limit for storing a delivery, milliseconds: longer than a healthy disk takes, shorter than senders wait. */
const STORE_MS = 8_000

function within<T>(work: Promise<T>, ms: number): Promise<T> {
  const late = Promise.withResolvers<never>()
  const timer = setTimeout(() => late.reject(new Error('the inbox took too long')), ms)
  return Promise.race([work, late.promise]).finally(() => clearTimeout(timer))
}
