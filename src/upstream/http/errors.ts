import { isUtf8 } from 'node:buffer'
import { essenceOf } from '../../base/domain/media-type.ts'
import { readRetryAfter } from '../../base/time.ts'
import { MirrorError, systemCode } from '../../base/errors.ts'
import { type RawAnswer, proxyStatus } from './transport.ts'
import { isObject, jsonTextOf } from '../../base/json/objects.ts'
import { lackOf } from './response.ts'

/** What the body of an error looks like, which differs between servers. */
export interface ErrorForm {
  /** Its media type, without parameters; empty: it has none. */
  readonly type: string
  /** Names of its members, where it is an object in JSON. */
  readonly members: readonly string[]
}

const NO_FORM: ErrorForm = { type: '', members: [] }
/** A body that says nothing, or is not read. */
export const NO_BODY: ErrorBody = { reason: null, members: [] }

/** What the body of an error says: its reason, and the names of its members. */
export interface ErrorBody {
  readonly reason: string | null
  readonly members: readonly string[]
}

/** An error status, with the data that the retry rule needs. */
class StatusError extends MirrorError {
  readonly status: number
  readonly retryAfterMs: number | null
  /** Whether it is for a pre-signed URL that has expired, or is invalid. */
  isExpiredUrl = false
  form: ErrorForm = NO_FORM
  constructor(
    code: 'upstream_status' | 'upstream_not_found' | 'upstream_auth',
    message: string,
    status: number,
    retryAfterMs: number | null,
  ) {
    super(code, message)
    this.status = status
    this.retryAfterMs = retryAfterMs
  }
}

/**
 * Creates the error for an error status. `Retry-After` is read in both forms; `reason` is the reason in the
 * response's body, if any.
 */
export function statusError(
  status: number,
  headers: Record<string, string | string[] | undefined>,
  path: string,
  now: () => number,
  { reason, members }: ErrorBody = NO_BODY,
): MirrorError {
  const wait = readRetryAfter(headers['retry-after'], now())
  const asked = wait === null ? '' : `, asked to wait ${Math.ceil(wait / 1000)} s`
  const detail = reason === null ? '' : ` (${reason})`
  const message = `${path}: upstream answered ${status}${asked}${detail}`
  const error = errorOf(status, message, wait, whyNotGone({ status, headers, wait, reason }))
  error.form = { type: essenceOf(String(headers['content-type'] ?? '')), members }
  return error
}

function errorOf(status: number, message: string, wait: number | null, notGone: string | null): StatusError {
  if (notGone !== null) return new StatusError('upstream_status', `${message}; ${notGone}`, status, wait)
  if (status === 404 || status === 410) return new StatusError('upstream_not_found', message, status, wait)
  if (status === 401 || status === 403) return new StatusError('upstream_auth', message, status, wait)
  return new StatusError('upstream_status', message, status, wait)
}

/** What a 404 says of what is made later: "it is being generated", "not ready yet", "try again later". */
const LATER =
  /\b(not (yet )?(ready|finished|generated)|(being|still) (built|made|generated|created|processed)|in progress|try again)\b|^(processing|pending|queued)\b/i

/** What an answer to a request says, by its status. */
interface Refused extends Pick<RawAnswer, 'status' | 'headers'> {
  /** For how long it asks to wait, milliseconds; null: it does not. */
  readonly wait: number | null
  /** The reason in its body. */
  readonly reason: string | null
}

/** Returns why a 404 does not say that there is nothing; null: it does, or it is another status. */
function whyNotGone({ status, headers, wait, reason }: Refused): string | null {
  if (status !== 404 && status !== 410) return null
  if (lackOf({ headers }) !== null) return 'upstream is a mirror, and may lack it'
  return wait !== null || LATER.test(reason ?? '') ? 'it may be there later' : null
}

/** Creates the error for an error status of another server than the service, with the wait that it asks for. */
export function answerError(
  code: 'upstream_status' | 'upstream_not_found' | 'upstream_auth',
  message: string,
  { status, headers }: Pick<RawAnswer, 'status' | 'headers'>,
): MirrorError {
  return new StatusError(code, message, status, readRetryAfter(headers['retry-after'], Date.now()))
}

/** Creates the error for a refusal by the service: 401 is about the credential, 403 about the one path. */
export function refusalError(status: 401 | 403, message: string): MirrorError {
  return new StatusError('upstream_auth', message, status, null)
}

/** Returns whether the service refuses the credential one path (403). Every other path may be allowed to it. */
export function isForbidden(error: unknown): boolean {
  return error instanceof StatusError && error.code === 'upstream_auth' && error.status === 403
}

/** Returns whether the credential itself is refused: every further request would be refused too. */
export function isKeyRefused(error: unknown): boolean {
  return error instanceof MirrorError && error.code === 'upstream_auth' && !isForbidden(error)
}

/** What a 429 says that counts refused credentials, not requests: "too many wrong keys", "too many failed login attempts". */
const WRONG_KEYS =
  /\b(wrong|invalid|bad|failed|incorrect)\b.*\b(keys?|credentials?|tokens?|passwords?|log-?ins?|auth\w*)\b/i

/** Returns whether a 429 gives wrong credentials as its reason. */
export function isForWrongKeys(error: unknown): boolean {
  return error instanceof StatusError && error.status === 429 && WRONG_KEYS.test(error.message)
}

/** Statuses with which hosts refuse a pre-signed URL that has expired. */
const EXPIRED_STATUSES: ReadonlySet<number> = new Set([401, 403, 410])
/** What hosts say of such a URL in the body of another 4xx: ExpiredRequest, AccessDenied, "Request has expired", "jwt expired". */
const EXPIRED_WORDS = /expir|AccessDenied|InvalidToken|TokenRefreshRequired|RequestTimeTooSkewed|AuthenticationFailed/i

/**
 * Creates the error for the status of a document behind a pre-signed URL: no credential was sent, so a refusal concerns only that URL.
 * `said` is the beginning of the response's body.
 */
export function documentError(
  status: number,
  headers: Record<string, string | string[] | undefined>,
  place: string,
  now: () => number,
  said: string,
): MirrorError {
  const isRefused = status >= 400 && status < 500 && status !== 429
  const isExpired = EXPIRED_STATUSES.has(status) || (isRefused && EXPIRED_WORDS.test(said))
  if (!isExpired) return statusError(status, headers, place, now)
  const message = `${place}: its host answered ${status}, so the pre-signed URL has expired or is invalid`
  const error = new StatusError('upstream_status', message, status, null)
  error.isExpiredUrl = true
  return error
}

/** Returns whether a document may be there with a new pre-signed URL. */
export function isExpiredUrl(error: unknown): boolean {
  return error instanceof StatusError && error.isExpiredUrl
}

/** Creates the error for a request that was not sent, because the host's rate limit is exhausted for too long. */
export function limitError(host: string, waitMs: number): MirrorError {
  const message = `${host}: its rate limit is used up for another ${Math.ceil(waitMs / 1000)} s, and nothing was sent`
  return new StatusError('upstream_status', message, 429, waitMs)
}

/** Network errors before the first byte of a request is sent: the service has not received it. */
const UNSENT = new Set([
  'ECONNREFUSED',
  'ENOTFOUND',
  'EAI_AGAIN',
  'EHOSTUNREACH',
  'ENETUNREACH',
  'UND_ERR_CONNECT_TIMEOUT',
])

/** Returns whether the service cannot have processed the request: it rejected it (429), or never received it. */
export function isUnsent(error: unknown): boolean {
  if (error instanceof StatusError) return error.status === 429
  const cause = error instanceof MirrorError ? systemCode(error.cause) : undefined
  return cause !== undefined && UNSENT.has(cause)
}

/**
 * Returns whether a retry can succeed: network errors, 429 and 5xx. Never for a shape, a size, a missing path or a
 * proxy's refusal (407).
 */
export function isTransient(error: unknown): boolean {
  if (error instanceof StatusError) return error.status === 429 || error.status >= 500
  if (!(error instanceof MirrorError) || error.code !== 'upstream_unreachable') return false
  const status = proxyStatus(error.cause) ?? 500
  return status >= 500 || status === 408 || status === 429
}

/** Returns the form of an error's body; null for an error without a response. */
export function formOf(error: unknown): ErrorForm | null {
  return error instanceof StatusError ? error.form : null
}

/** Returns the HTTP status of an error; null when it has none. */
export function statusOf(error: unknown): number | null {
  return error instanceof StatusError ? error.status : null
}

/** Returns the wait that upstream requested, milliseconds; null when it did not. */
export function retryAfterMs(error: unknown): number | null {
  return error instanceof StatusError ? error.retryAfterMs : null
}

const MAX_BYTES = 16_384
const MAX_LENGTH = 300

/**
 * Reads the reason from the body of an error response, in a line of at most 300 characters: a JSON body's
 * description, message or code, or a plain text. Null when it has none, or cannot be read.
 */
export async function readErrorReason(body: RawAnswer['body']): Promise<ErrorBody> {
  const bytes = await readErrorBody(body)
  if (bytes === null) return NO_BODY
  try {
    const value: unknown = JSON.parse(jsonTextOf(bytes))
    return { reason: reasonOf(value), members: isObject(value) ? Object.keys(value) : [] }
  } catch {
    return { reason: plainReason(bytes), members: [] }
  }
}

/** Returns a plain text in one line; null for markup, and for bytes that are no text. */
function plainReason(bytes: Buffer): string | null {
  const line = isUtf8(bytes) ? oneLine(bytes.toString()) : ''
  return line === '' || /^[<{[]/.test(line) ? null : line
}

/** Reads the body of an error response; null when it is longer than 16 KiB, or cannot be read. */
export async function readErrorBody(body: RawAnswer['body']): Promise<Buffer | null> {
  const chunks: Buffer[] = []
  let total = 0
  try {
    for await (const chunk of body) {
      chunks.push(chunk)
      total += chunk.length
      if (total > MAX_BYTES) return null // leaving the loop ends the body
    }
    return Buffer.concat(chunks)
  } catch {
    return null // the status is sufficient
  }
}

const PLACES = ['error_description', 'message', 'detail', 'title', 'error', 'status', 'state'] as const

function reasonOf(body: unknown): string | null {
  if (typeof body !== 'object' || body === null) return null
  const fields = body as Readonly<Record<string, unknown>>
  if (Array.isArray(fields['errors'])) return reasonOf(fields['errors'][0])
  for (const place of PLACES) {
    const value = fields[place]
    if (typeof value === 'string' && value.trim() !== '') return oneLine(value)
    if (place === 'error' && typeof value === 'object') return reasonOf(value)
  }
  return null
}

function oneLine(text: string): string {
  const line = text.replace(/[\s\p{C}]+/gu, ' ').trim()
  return line.length > MAX_LENGTH ? `${line.slice(0, MAX_LENGTH)}…` : line
}
