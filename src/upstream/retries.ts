import { MirrorError } from '../errors.ts'

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

/** The error for a status that is not an answer. `Retry-After` is read in both of its forms. */
export function statusError(
  status: number,
  headers: Record<string, string | string[] | undefined>,
  path: string,
  now: () => number,
): MirrorError {
  const wait = parseRetryAfter(headers['retry-after'], now)
  const asked = wait === null ? '' : `, asked to wait ${Math.ceil(wait / 1000)} s`
  const message = `${path}: upstream answered ${status}${asked}`
  if (status === 404 || status === 410) {
    return new StatusError('upstream_not_found', message, status, wait)
  }
  if (status === 401 || status === 403)
    return new StatusError('upstream_auth', message, status, wait)
  return new StatusError('upstream_status', message, status, wait)
}

function parseRetryAfter(value: string | string[] | undefined, now: () => number): number | null {
  if (typeof value !== 'string') return null
  if (/^\d+$/.test(value.trim())) return Number(value) * 1000
  const at = Date.parse(value)
  return Number.isNaN(at) ? null : Math.max(0, at - now())
}

/** Whether trying again can help: network faults, 429 and 5xx. Never a shape, a size or a missing path. */
export function isTransient(error: unknown): boolean {
  if (error instanceof StatusError) return error.status === 429 || error.status >= 500
  return error instanceof MirrorError && error.code === 'upstream_unreachable'
}

/** How long upstream asked to wait, milliseconds; null when it did not. */
export function retryAfterMs(error: unknown): number | null {
  return error instanceof StatusError ? error.retryAfterMs : null
}
