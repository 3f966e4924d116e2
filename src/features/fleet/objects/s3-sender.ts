import { setTimeout as sleep } from 'node:timers/promises'
import { messageOf, systemCode } from '../../../base/errors.ts'
import type { StoreCounters } from './counted-store.ts'
import { FleetError } from './object-store.ts'

/** Attempts of one request. */
const ATTEMPTS = 4
/** Pause before the second attempt, milliseconds, at most; three times as long before each further one. */
const PAUSE_MS = 200
/** Longest time until a request is answered, milliseconds, besides that of its bytes. */
const ANSWER_MS = 30_000
/** The slowest upload that is waited for, bytes a second. */
const SLOWEST = 50_000

/** A failure that the caller of a request expects. */
export type ExpectedFailure = Extract<Verdict, 'missing' | 'condition' | 'range'>

/** A request of a call. */
export interface StoreCall {
  readonly verb: keyof StoreCounters['requests']
  /** For messages: `write lease.json`. */
  readonly what: string
  /** Bytes that it sends. */
  readonly bytes?: number
  /** Whether a second attempt must not follow one of which it is not known what it did. */
  readonly isOnce?: boolean
}

/** Sends a request until it is answered. Throws `FleetError` when it failed for good. */
export type StoreSender = <T>(
  call: StoreCall,
  request: (signal: AbortSignal) => Promise<T>,
) => Promise<T | ExpectedFailure>

interface SenderOptions {
  /** The store, for messages. */
  readonly place: string
  readonly counters: StoreCounters
  /** Aborted when the store is closed. */
  readonly closing: AbortSignal
  readonly answerMs?: number | undefined
  readonly pauseMs?: number | undefined
}

const isExpected = (verdict: Verdict): verdict is ExpectedFailure =>
  verdict === 'missing' || verdict === 'condition' || verdict === 'range'

/** Creates the sender of a store, the one place with deadlines and attempts. */
export function createStoreSender({
  place,
  counters,
  closing,
  answerMs = ANSWER_MS,
  pauseMs = PAUSE_MS,
}: SenderOptions): StoreSender {
  return async (call, request) => {
    const { verb, what, bytes = 0, isOnce = false } = call
    const ms = answerMs + (bytes / SLOWEST) * 1000
    for (let attempt = 1; ; attempt++) {
      try {
        return await withDeadline(request, ms, closing)
      } catch (error) {
        const verdict = judgeFailure(error)
        if (isExpected(verdict)) return verdict
        const again = verdict === 'busy' || (verdict === 'lost' && !isOnce)
        if (!again || attempt === ATTEMPTS || closing.aborted) throw storeFailure(what, place, error)
        counters.requests[verb].retried++
        await sleep(Math.random() * pauseMs * 3 ** (attempt - 1))
      }
    }
  }
}

/** Runs a request; the deadline ends with its answer, whose body may take longer. */
async function withDeadline<T>(
  request: (signal: AbortSignal) => Promise<T>,
  ms: number,
  closing: AbortSignal,
): Promise<T> {
  const controller = new AbortController()
  const abort = (): void => controller.abort()
  const late = new Error(`no answer within ${ms / 1000} s`)
  const timer = setTimeout(() => controller.abort(late), ms)
  closing.addEventListener('abort', abort, { once: true })
  try {
    return await request(controller.signal)
  } catch (error) {
    throw controller.signal.reason === late ? late : error
  } finally {
    clearTimeout(timer)
    closing.removeEventListener('abort', abort)
  }
}

/**
 * What a failed request means: `missing`: no such object; `condition`: the condition of a write did not hold; `range`: the object
 * ends before the first byte asked for; `busy`: nothing was done, and a later attempt may succeed; `lost`: it is not known what
 * was done; `refused`: nothing was done, and an attempt would fail again.
 */
type Verdict = 'missing' | 'condition' | 'range' | 'busy' | 'lost' | 'refused'

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
function judgeFailure(error: unknown): Verdict {
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

/** The SDK keeps credentials that have no end, also when their file changes. */
const RESTART = 'Restart after a change: keys of the environment and of a profile file are read once.'
const KEYS = `Check AWS_ACCESS_KEY_ID, AWS_SECRET_ACCESS_KEY and the region (fleet.endpoint, ?region=NAME). ${RESTART}`

/** What to do about a refusal, by its code. */
const HINTS: Partial<Record<string, string>> = {
  NoSuchBucket: 'Create the bucket, or correct fleet.url.',
  AccessDenied: 'Allow these credentials what docs/guides/fleet.md lists.',
  Forbidden: 'Allow these credentials what docs/guides/fleet.md lists.',
  InvalidAccessKeyId: KEYS,
  SignatureDoesNotMatch: KEYS,
  ExpiredToken: `The credentials have ended: give new ones. ${RESTART}`,
  AuthorizationHeaderMalformed: 'Give the region of the bucket: fleet.endpoint, ?region=NAME.',
  PermanentRedirect: 'Give the region of the bucket: fleet.endpoint, ?region=NAME.',
  RequestTimeTooSkewed: 'Correct the clock of this machine.',
  NotImplemented: 'The store lacks this request: run "patchmirror fleet check".',
  CredentialsProviderError: 'Give credentials: AWS_ACCESS_KEY_ID and AWS_SECRET_ACCESS_KEY, a profile file, or a role.',
}

/** The most characters of a store's own words: it may be another program that answers, or say anything. */
const MOST_SHOWN = 300

/** What may be a session token, a signature or a key: a store can repeat what it was sent, and this is logged. */
const TOKEN = /[\w+/=%-]{40,}/g

/** Returns the error of a call that failed for good. `what` says the call, as `write lease.json`. */
function storeFailure(what: string, place: string, cause: unknown): FleetError {
  const status = statusOf(cause)
  const code = codeOf(cause)
  const verdict = judgeFailure(cause)
  const hint = HINTS[code] ?? (TLS.test(code) ? 'Set upstream.caFile, if its authority is your own.' : '')
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
