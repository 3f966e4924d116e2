import { systemCode } from '../../base/errors.ts'
import type { DueDelivery } from '../../store/webhooks/outbox.ts'
import { type RawAnswer, type Transport, faultNotes } from '../../upstream/http/transport.ts'
import { chatBody } from './chat.ts'
import type { TargetResponse } from './delivery-rule.ts'
import { signDelivery } from '../../webhooks/receive/signature.ts'

/** Dependencies of the sender. */
interface SenderDeps {
  readonly transport: Pick<Transport, 'send'>
  readonly sign: Sign
  /** Targets that are team workspaces. */
  readonly chat: {
    readonly urls: ReadonlySet<string>
    /** Whether an event is worth no message; none is sent then, and the delivery is forgotten. */
    readonly isOld?: (body: Uint8Array) => boolean
  }
  /** From the first byte sent to the head of the response. */
  readonly timeoutMs: number
  readonly userAgent: string
  /** Unix milliseconds. */
  readonly now: () => number
}

/**
 * Creates the sender: each attempt has the same `webhook-id`, a new timestamp, and a signature over both and the bytes.
 * Redirects are not followed, response bodies not read. Never rejects, and never reports the URL, which may contain a
 * token.
 */
export function createSender(deps: SenderDeps) {
  const { transport, timeoutMs, chat } = deps
  return async (url: string, delivery: DueDelivery): Promise<TargetResponse> => {
    if (chat.urls.has(url) && chat.isOld?.(delivery.body) === true) return { skipped: true }
    const deadline = AbortSignal.timeout(timeoutMs)
    try {
      const { headers, body } = requestFor(url, delivery, deps)
      const request = { method: 'POST' as const, url: new URL(url), headers, body }
      const answer = await transport.send(request, deadline)
      await discard(answer.body)
      const retryAfter = answer.headers['retry-after']
      return {
        status: answer.status,
        retryAfter: typeof retryAfter === 'string' ? retryAfter : null,
      }
    } catch (error) {
      if (deadline.aborted) return { failure: `no answer within ${timeoutMs} ms${faultNotes(error)}` }
      return { failure: `no answer (${codeOf(error)})${faultNotes(error)}` }
    }
  }
}

/** Builds a signed event, or a message for a team workspace, which is not signed since its URL is its credential. */
function requestFor(
  url: string,
  { webhookId, body }: DueDelivery,
  { sign, chat, userAgent, now }: SenderDeps,
): { headers: Record<string, string>; body: Buffer } {
  const agent = { 'user-agent': userAgent }
  if (chat.urls.has(url)) {
    const headers = { ...agent, 'content-type': 'application/json' }
    return { headers, body: chatBody(body) }
  }
  const timestamp = Math.floor(now() / 1000)
  const headers = {
    ...agent,
    'content-type': typeOf(body),
    'webhook-id': webhookId,
    'webhook-timestamp': String(timestamp),
    'webhook-signature': sign(webhookId, timestamp, body),
  }
  return { headers, body }
}

/** Returns the content type. Upstream's header is not stored: a JSON event is a CloudEvent, as in the contract. */
function typeOf(body: Uint8Array): string {
  const first = Buffer.from(body.subarray(0, 64)).toString('utf8').trimStart().charAt(0)
  if (first === '{') return 'application/cloudevents+json'
  return first === '[' ? 'application/cloudevents-batch+json' : 'application/octet-stream'
}

/** Time after which a response body is cut off with its connection, milliseconds. */
const BODY_MS = 1_000

/** Discards a response body within the attempt: an endless one delays only its own target. */
async function discard(body: RawAnswer['body']): Promise<void> {
  const cut = setTimeout(() => body.destroy(), BODY_MS)
  await body.dump().catch(() => undefined)
  clearTimeout(cut)
}

function codeOf(error: unknown): string {
  const cause = error instanceof Error ? error.cause : undefined
  return systemCode(error) ?? systemCode(cause) ?? 'the connection failed'
}

/** Signs a message: its id, the time of the attempt in Unix seconds, its bytes. */
type Sign = (webhookId: string, timestamp: number, body: Buffer) => string

/**
 * Creates signatures over the exact bytes of the body, since upstream's events are relayed unchanged. The header has two: that
 * of Standard Webhooks (`v1,` and base64), and that of the vendor's receiver (`v1,` and hex, keyed with the whole secret). A
 * receiver uses the one it knows. Throws for a secret that is not base64; the settings refuse it.
 */
export function createSigner(secret: string): Sign {
  return (id, timestamp, body) => {
    const standard = signDelivery({ id, timestamp, body, secret, dialect: 'standard' })
    const vendor = signDelivery({ id, timestamp, body, secret, dialect: 'vendor' })
    if (standard === null || vendor === null) throw new Error('the secret of the relay is not base64')
    return `${standard} ${vendor}`
  }
}

/** Formats the secret for receivers, from the mirror's own key. */
export function formatSecret(key: Buffer): string {
  return `whsec_${key.toString('base64')}`
}
