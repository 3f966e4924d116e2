import { messageOf, systemCode } from '../../../base/errors.ts'
import { FleetError } from './object-store.ts'

/**
 * What a failed request means: `missing`: no such object; `condition`: the condition of a write did not hold; `range`: the object
 * ends before the first byte asked for; `busy`: nothing was done, and a later attempt may succeed; `lost`: it is not known what
 * was done; `refused`: nothing was done, and an attempt would fail again.
 */
export type Verdict = 'missing' | 'condition' | 'range' | 'busy' | 'lost' | 'refused'

/** Codes of S3, and of the network, for requests that were not carried out. */
const BUSY: ReadonlySet<string> = new Set([
  ...['SlowDown', 'TooManyRequests', 'TooManyRequestsException', 'ThrottlingException'],
  ...['RequestTimeout', 'RequestTimeTooSkewed', 'OperationAborted', 'ConditionalRequestConflict'],
  ...['ECONNREFUSED', 'ENOTFOUND', 'EAI_AGAIN', 'EHOSTUNREACH', 'ENETUNREACH'],
])

const TLS = /^(ERR_TLS|ERR_SSL|CERT_|SELF_SIGNED|DEPTH_ZERO|UNABLE_TO_)/

/** Properties of the SDK's errors. */
interface SdkError {
  readonly name?: unknown
  readonly $metadata?: { readonly httpStatusCode?: number }
}

function statusOf(error: unknown): number | null {
  return (error as SdkError | null)?.$metadata?.httpStatusCode ?? null
}

/** The name of a failure: a code of S3, a code of the network, or the class of the error. */
function codeOf(error: unknown): string {
  const { name } = (error ?? {}) as SdkError
  const system = systemCode(error)
  return statusOf(error) === null && system !== undefined ? system : String(name)
}

/** Judges an error of the SDK. */
export function judgeFailure(error: unknown): Verdict {
  const status = statusOf(error)
  const code = codeOf(error)
  if (code === 'NoSuchBucket') return 'refused'
  if (code === 'NoSuchUpload') return 'lost' // it was completed by an attempt without an answer, or aborted by the store
  if (BUSY.has(code)) return 'busy'
  if (status === null) return isBeforeSending(code) ? 'refused' : 'lost'
  if (status >= 500) return status === 501 ? 'refused' : 'lost'
  return BY_STATUS[status] ?? 'refused'
}

const BY_STATUS: Partial<Record<number, Verdict>> = {
  200: 'lost', // an error within an answer that had begun
  404: 'missing',
  409: 'busy',
  412: 'condition',
  416: 'range',
  429: 'busy',
}

function isBeforeSending(code: string): boolean {
  return code === 'CredentialsProviderError' || TLS.test(code)
}

const KEYS = 'Check AWS_ACCESS_KEY_ID, AWS_SECRET_ACCESS_KEY and fleet.region.'

/** What to do about a refusal, by its code. */
const HINTS: Partial<Record<string, string>> = {
  NoSuchBucket: 'Create the bucket, or correct fleet.url.',
  AccessDenied: 'Allow these credentials what docs/guides/fleet.md lists.',
  Forbidden: 'Allow these credentials what docs/guides/fleet.md lists.',
  InvalidAccessKeyId: KEYS,
  SignatureDoesNotMatch: KEYS,
  AuthorizationHeaderMalformed: 'Set fleet.region to the region of the bucket.',
  PermanentRedirect: 'Set fleet.region to the region of the bucket.',
  RequestTimeTooSkewed: 'Correct the clock of this machine.',
  NotImplemented: 'The store lacks this request: run "patchmirror fleet check".',
  CredentialsProviderError: 'Give credentials: AWS_ACCESS_KEY_ID and AWS_SECRET_ACCESS_KEY, a profile file, or a role.',
}

/** The most characters of a store's own words: it may be another program that answers, or say anything. */
const MOST_SHOWN = 300

/** What may be a session token, a signature or a key: a store can repeat what it was sent, and this is logged. */
const TOKEN = /[\w+/=%-]{40,}/g

/** Returns the error of a call that failed for good. `what` says the call, as `write lease.json`. */
export function storeFailure(what: string, place: string, cause: unknown): FleetError {
  const status = statusOf(cause)
  const code = codeOf(cause)
  const verdict = judgeFailure(cause)
  const hint = HINTS[code] ?? (TLS.test(code) ? 'Set fleet.caFile, if its authority is your own.' : '')
  const text = messageOf(cause)
  const shown = [status, text.includes(code) ? null : code, text]
  const reason = shown
    .filter((one) => one !== null && one !== '')
    .join(' ')
    .replace(TOKEN, '…')
    .slice(0, MOST_SHOWN)
  const outcome = verdict === 'lost' ? 'unknown' : 'refused'
  return new FleetError(outcome, `fleet.url: cannot ${what} in ${place}: ${reason}. ${hint}`.trim(), {
    cause,
    isPassing: verdict === 'lost' || verdict === 'busy',
  })
}
