import type { Config } from '../../config/schema.ts'
import { MirrorError } from '../../base/errors.ts'
import { type Meta, discardBody, metaOf, networkError } from './response.ts'
import type { ClockWatch } from '../clock-check.ts'
import type { Authorization } from './credentials.ts'
import { type Deadline, type Delay, type OnRetry, RETRY_AFTER_MAX_MS } from './retry.ts'
import type { HostLimiter } from './limiter.ts'
import type { Priority } from './quota.ts'
import { originOf } from './destinations.ts'
import { readRetryAfter } from '../../base/time.ts'
import { isKeyRefused, readErrorReason, refusalError, statusError } from './errors.ts'
import type { SecretSearch } from '../secret-search.ts'
import { type RawAnswer, type RawRequest, type Transport, proxyStatus, through } from './transport.ts'

/** A surface of the service, with everything that its requests share. */
export interface Wire {
  config: Config['upstream']
  transport: Transport
  /** Name of the surface in messages: `remediation surface`. */
  title: string
  /** Setting of its root, for messages. */
  setting: string
  authorization: Authorization | null
  /** Removes secrets from error reasons in responses; null where requests contain none. */
  scrub: ((text: string) => string) | null
  /** Finds the credentials of all surfaces in responses. */
  secrets: SecretSearch
  limiter: HostLimiter | null
  /** Null: dates are not checked. */
  clock: ClockWatch | null
  userAgent: string
  now: () => number
  delay: Delay
}

/** State of one run's requests: its signal, its priority, its cost, the refusal that ended it, and who is notified of repeated attempts. */
export interface RunSignal {
  signal: AbortSignal
  priority: Priority
  cost: { requests: number; bytes: number; retries: number }
  refused: MirrorError | null
  onRetry?: OnRetry | undefined
}

/**
 * Sends one request when the limiter permits it, with the credential, if there is one. `deadline` starts when its
 * first attempt is sent, and ends with the run. Throws `upstream_unreachable`, and `upstream_auth` for a refused
 * credential or path; after a refused credential (401, or by the proxy) it throws that error for the rest of the run
 * without sending.
 */
export async function exchange(
  wire: Wire,
  run: RunSignal,
  request: RawRequest,
  deadline: Deadline,
): Promise<RawAnswer> {
  const { authorization } = wire
  if (authorization === null) return send(wire, run, request, deadline)
  if (run.refused !== null) throw run.refused
  try {
    const answer = await withCredential(wire, run, request, deadline, authorization)
    if (isLongWait(wire, answer)) {
      const { status, headers } = answer
      run.refused = statusError(status, headers, request.url.pathname, wire.now)
    }
    return answer
  } catch (error) {
    if (error instanceof MirrorError && isRefusal(error)) run.refused ??= error
    throw error
  }
}

/**
 * Returns whether further requests would be refused too, and could lock the account: a refused credential of the
 * service or the proxy.
 */
function isRefusal(error: MirrorError): boolean {
  return isKeyRefused(error) || proxyStatus(error.cause) === 407
}

/** Returns whether a 429 requests a longer wait than `RETRY_AFTER_MAX_MS`: this ends the run. */
function isLongWait({ now }: Wire, { status, headers }: RawAnswer): boolean {
  if (status !== 429) return false
  return (readRetryAfter(headers['retry-after'], now()) ?? 0) > RETRY_AFTER_MAX_MS
}

async function withCredential(
  wire: Wire,
  run: RunSignal,
  request: RawRequest,
  deadline: Deadline,
  authorization: Authorization,
): Promise<RawAnswer> {
  const signed = (header: string): RawRequest => ({
    ...request,
    headers: { ...request.headers, authorization: header },
  })
  const first = await authorization.header(run.signal)
  let answer = await send(wire, run, signed(first), deadline)
  if (answer.status === 401) {
    const second = await authorization.renew(first, run.signal)
    if (second !== null) {
      await discardBody(answer.body)
      answer = await send(wire, run, signed(second), deadline)
    }
  }
  if (answer.status !== 401 && answer.status !== 403) return answer
  const { reason } = await readErrorReason(answer.body)
  throw refusal(wire, authorization, request, { ...answer, status: answer.status }, reason)
}

/** Returns the metadata of a response. Throws `upstream_secret` when a header that is stored contains a credential. */
export function checkedMeta({ now, secrets }: Wire, { method, url }: RawRequest, answer: RawAnswer): Meta {
  const meta = metaOf(answer, now)
  try {
    // The response to a change is not stored, and may be meant to return a credential.
    if (method === 'GET') secrets.check(JSON.stringify(meta), url.pathname)
  } catch (error) {
    answer.body.destroy()
    throw error
  }
  return meta
}

/** Creates the error for a refused credential, or a path that is refused to it; it names the credential, the surface and what to check. */
function refusal(
  { title, secrets }: Wire,
  authorization: Authorization,
  { method, url }: RawRequest,
  { status, proxy = null }: Pick<RawAnswer, 'proxy'> & { status: 401 | 403 },
  reason: string | null,
): MirrorError {
  const { name } = authorization
  const place = `the ${title} at ${originOf(url)} (${method} ${url.pathname})${through(proxy)}`
  const detail = reason === null ? '' : ` Reason given: ${secrets.scrub(authorization.scrub(reason))}.`
  const message =
    status === 401
      ? `${name} was refused by ${place}: 401.${detail} Check that it is complete, meant for this service, ` +
        'neither expired nor deleted; "patchmirror config" shows where it was read from.'
      : `${name} is not allowed this by ${place}: 403.${detail} Check the role and the organization of the ` +
        'account that it belongs to.'
  return refusalError(status, message)
}

async function send(
  { limiter, transport, userAgent, config, clock, now }: Wire,
  { signal, priority, cost }: RunSignal,
  request: RawRequest,
  deadline: Deadline,
): Promise<RawAnswer> {
  const permit = (await limiter?.acquire(signal, priority)) ?? null
  cost.requests++
  const headers = { 'user-agent': userAgent, ...request.headers }
  try {
    const sentAt = now()
    const answer = await transport.send({ ...request, headers }, deadline())
    clock?.observe(answer.headers, sentAt, now())
    permit?.answered(answer)
    return answer
  } catch (error) {
    permit?.failed()
    const { url } = request
    throw networkError(error, `${originOf(url)}${url.pathname}`, config.requestTimeoutMs)
  }
}
