import type { IncomingMessage, ServerResponse } from 'node:http'

/** The outcome of a request at an endpoint, for counters. */
export type ReceiptOutcome =
  'new' | 'altered' | 'duplicate' | 'ignored' | 'unauthorized' | 'unavailable' | 'refused' | 'handshake' | 'gone'

/** An answer of the receiver. */
export interface WebhookResponse {
  readonly status: number
  readonly error?: string
  readonly message?: string
  readonly headers?: Readonly<Record<string, string>>
}

/** How long a sender should wait before it tries again. */
const RETRY = { 'Retry-After': '30' }

/** A new event: it is on disk. */
export const ACCEPTED: WebhookResponse = { status: 202 }
/** A duplicate delivery, or one of a type that is not enabled. */
export const KNOWN: WebhookResponse = { status: 200 }

/** The only answer to a failed authentication: it reveals no reason. */
export const UNAUTHORIZED: WebhookResponse = {
  status: 401,
  error: 'unauthorized',
  message: 'the delivery could not be authenticated',
  headers: { 'WWW-Authenticate': 'Webhook' },
}
/** There is nothing to verify with; never a 2xx. */
export const NO_SECRET = notReady('webhooks are not set up here')
/** The inbox cannot be written now. */
export const UNAVAILABLE = unavailable('deliveries cannot be stored now: retry later')
/** Too many deliveries are pending already. */
export const FULL = unavailable('too many deliveries wait to be worked on')
/** The mirror is shutting down. */
export const CLOSING = unavailable('the mirror is shutting down')
/** Memory for bodies is spent, and this one took longest. */
export const CROWDED = unavailable('too many deliveries are on their way')
/** The body did not end in time. */
export const TOO_SLOW: WebhookResponse = {
  status: 408,
  error: 'bad_request',
  message: 'the delivery did not come in time',
}
/** The body is compressed, and it is not this form of it that was signed. */
export const ENCODED: WebhookResponse = {
  status: 415,
  error: 'unsupported_encoding',
  message: 'deliveries are taken as they were signed, without Content-Encoding',
  headers: { 'Accept-Encoding': 'identity' },
}
/** What an endpoint takes, as `Allow` names it. */
export const ENDPOINT_METHODS = 'POST, OPTIONS'
/** Something else than POST and OPTIONS. */
export const WRONG_METHOD: WebhookResponse = {
  status: 405,
  error: 'method_not_allowed',
  message: 'deliveries come by POST',
  headers: { Allow: ENDPOINT_METHODS },
}

/** One byte per chunk, or few more: reading them costs far more than a normal delivery. */
export const TOO_MANY_PIECES: WebhookResponse = {
  status: 413,
  error: 'too_large',
  message: 'the delivery is sent in too many small chunks',
}

/** 413 for a delivery over the limit. */
export function tooLarge(maxBytes: number): WebhookResponse {
  return {
    status: 413,
    error: 'too_large',
    message: `a delivery has at most ${maxBytes} bytes`,
  }
}

/** 503: deliveries that are stored here would cause no refresh now. */
export function notReady(message: string): WebhookResponse {
  return { status: 503, error: 'not_ready', message, headers: RETRY }
}

function unavailable(message: string): WebhookResponse {
  return { status: 503, error: 'unavailable', message, headers: RETRY }
}

/** Sends an answer that must not be cached; nothing when the client is gone. */
export function sendReply(
  request: IncomingMessage,
  response: ServerResponse,
  { status, error, message, headers }: WebhookResponse,
): void {
  if (response.headersSent || response.destroyed) return
  const body = error === undefined ? '' : JSON.stringify({ error, message })
  response.writeHead(status, {
    ...(body !== '' && { 'Content-Type': 'application/json' }),
    'Content-Length': Buffer.byteLength(body),
    'Cache-Control': 'no-store',
    ...headers,
  })
  response.end(request.method === 'HEAD' ? '' : body)
}
