import type { IncomingMessage } from 'node:http'
import type { NewDelivery } from '../../store/webhooks/inbox.ts'
import {
  type WebhookResponse,
  type ReceiptOutcome,
  CLOSING,
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
import type { DeliveryFault } from './body-reader.ts'
import { type TypeFilter, parseBody } from './event.ts'
import { valuesOf } from './headers.ts'

/** What a request came to: its answer, the outcome for the counters, and why. */
export interface Result {
  readonly answer: WebhookResponse
  readonly outcome: ReceiptOutcome
  readonly reason: string
  /** More for the log, in our own words. */
  readonly detail?: string
}

/** Puts a result together; `reason` is one of few words, and empty where there is nothing to explain. */
export const result = (answer: WebhookResponse, outcome: ReceiptOutcome, reason = ''): Result => ({
  answer,
  outcome,
  reason,
})

/** By what requests are judged. */
export interface Rules {
  /** Whether there is a secret to verify with. */
  readonly isSetUp: () => boolean
  /** Why deliveries are not taken now; null: they are. */
  readonly refusal?: () => string | null
  readonly isWanted: TypeFilter
  readonly allowedOrigins: readonly string[]
  readonly maxBytes: number
}

/** What can be answered without the body; null: it has to be read. */
export function judgeHead(request: IncomingMessage, rules: Rules, closing: boolean): Result | null {
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
export function unauthentic(rawHeaders: readonly string[], reason: string): Result {
  return isEncoded(rawHeaders) ? result(ENCODED, 'refused', 'encoding') : result(UNAUTHORIZED, 'unauthorized', reason)
}

/** The result for a body that could not be read. */
export function unread(fault: DeliveryFault, maxBytes: number): Result {
  if (fault === 'too_large') return result(tooLarge(maxBytes), 'refused', fault)
  if (fault === 'too_many_pieces') return result(TOO_MANY_PIECES, 'refused', fault)
  if (fault === 'late') return result(TOO_SLOW, 'refused', 'too_slow')
  if (fault === 'crowded') return result(CROWDED, 'unavailable', fault)
  return result(TOO_SLOW, 'gone', 'gone')
}

type Judged = Pick<NewDelivery, 'state' | 'type' | 'target' | 'reason'>

/** Returns what a verified body means for the mirror: in any form, it causes a refresh. */
export function judgeBody(body: Buffer, { isWanted }: Rules): Judged {
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
