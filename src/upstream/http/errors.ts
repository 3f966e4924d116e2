import { MirrorError, systemCode } from '../../core/errors.ts'
import { type RawAnswer, proxyStatus } from './transport.ts'
import { jsonTextOf } from '../../json/objects.ts'

/** An unusable HTTP status, with what the retry rule needs to know of it. */
class StatusError extends MirrorError {
  readonly status: number
  readonly retryAfterMs: number | null
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
 * The error for a status that is not an answer. `Retry-After` is read in both of its forms; `said` is what the
 * answer's body says of the reason, if anything.
 */
export function statusError(
  status: number,
  headers: Record<string, string | string[] | undefined>,
  path: string,
  now: () => number,
  said: string | null = null,
): MirrorError {
  const wait = parseRetryAfter(headers['retry-after'], now)
  const asked = wait === null ? '' : `, asked to wait ${Math.ceil(wait / 1000)} s`
  const reason = said === null ? '' : ` (${said})`
  const message = `${path}: upstream answered ${status}${asked}${reason}`
  if (status === 404 || status === 410) {
    return new StatusError('upstream_not_found', message, status, wait)
  }
  if (status === 401 || status === 403)
    return new StatusError('upstream_auth', message, status, wait)
  return new StatusError('upstream_status', message, status, wait)
}

/**
 * The same for a document behind a pre-signed URL: no credential of ours was sent, so a 401 or 403 says nothing of one,
 * only of that URL.
 */
export function documentError(
  status: number,
  headers: Record<string, string | string[] | undefined>,
  place: string,
  now: () => number,
): MirrorError {
  if (status !== 401 && status !== 403) return statusError(status, headers, place, now)
  const message = `${place}: its host answered ${status}, so the pre-signed URL expired or never was good`
  return new StatusError('upstream_status', message, status, null)
}

/** Milliseconds that a Retry-After header asks to wait, in both of its forms; null when it makes no sense. */
export function parseRetryAfter(
  value: string | string[] | undefined,
  now: () => number,
): number | null {
  if (typeof value !== 'string') return null
  if (/^\d+$/.test(value.trim())) return Number(value) * 1000
  const at = Date.parse(value)
  return Number.isNaN(at) ? null : Math.max(0, at - now())
}

/** The error for a request that was not sent, because the host's rate limit leaves no room for so long. */
export function limitError(host: string, waitMs: number): MirrorError {
  const message = `${host}: its rate limit is used up for another ${Math.ceil(waitMs / 1000)} s, and nothing was sent`
  return new StatusError('upstream_status', message, 429, waitMs)
}

/** Network faults that come before the first byte of a request is sent: the service has not seen it. */
const UNSENT = new Set([
  'ECONNREFUSED',
  'ENOTFOUND',
  'EAI_AGAIN',
  'EHOSTUNREACH',
  'ENETUNREACH',
  'UND_ERR_CONNECT_TIMEOUT',
])

/** Whether the service cannot have acted on the request: it refused to look at it (429), or it never got it. */
export function isUnsent(error: unknown): boolean {
  if (error instanceof StatusError) return error.status === 429
  const cause = error instanceof MirrorError ? systemCode(error.cause) : undefined
  return cause !== undefined && UNSENT.has(cause)
}

/**
 * Whether trying again can help: network faults, 429 and 5xx. Never a shape, a size, a missing path or what a proxy
 * refuses (407).
 */
export function isTransient(error: unknown): boolean {
  if (error instanceof StatusError) return error.status === 429 || error.status >= 500
  if (!(error instanceof MirrorError) || error.code !== 'upstream_unreachable') return false
  const status = proxyStatus(error.cause) ?? 500
  return status >= 500 || status === 408 || status === 429
}

/** The HTTP status behind an error; null when it is none. */
export function statusOf(error: unknown): number | null {
  return error instanceof StatusError ? error.status : null
}

/** How long upstream asked to wait, milliseconds; null when it did not. */
export function retryAfterMs(error: unknown): number | null {
  return error instanceof StatusError ? error.retryAfterMs : null
}

const MAX_BYTES = 16_384
const MAX_LENGTH = 300

/**
 * What the body of a refusal says of the reason, in a line of at most 300 characters: a JSON body's description,
 * message or code. Null when it says nothing that is meant for people, or cannot be read.
 */
export async function readErrorReason(body: RawAnswer['body']): Promise<string | null> {
  const chunks: Buffer[] = []
  let total = 0
  try {
    for await (const chunk of body) {
      chunks.push(chunk)
      total += chunk.length
      if (total > MAX_BYTES) return null // leaving the loop ends the body
    }
    return reasonOf(JSON.parse(jsonTextOf(Buffer.concat(chunks))))
  } catch {
    return null // the status is what counts
  }
}

const PLACES = ['error_description', 'message', 'detail', 'title', 'error'] as const

function reasonOf(body: unknown): string | null {
  if (typeof body !== 'object' || body === null) return null
  const fields = body as Readonly<Record<string, unknown>>
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
