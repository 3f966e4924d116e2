import { systemCode } from '../core/errors.ts'
import type { DueDelivery } from '../store/webhooks/outbox.ts'
import { type RawAnswer, type Transport, faultNotes } from '../upstream/http/transport.ts'
import { chatBody } from './chat.ts'
import type { TargetResponse } from './delivery-rule.ts'
import type { RELAY_DIALECTS } from '../config/kinds/urls.ts'
import { signDelivery } from '../webhooks/receive/signature.ts'

/** What a delivery is sent with. */
interface SenderDeps {
  readonly transport: Pick<Transport, 'send'>
  readonly sign: Sign
  /** Targets that are team workspaces, and what a message to them says. */
  readonly chat: { readonly urls: ReadonlySet<string>; readonly template: string }
  /** From the first byte out to the head of the answer. */
  readonly timeoutMs: number
  readonly userAgent: string
  /** Unix milliseconds. */
  readonly now: () => number
}

/**
 * Sends deliveries: the same `webhook-id` at each attempt, a new timestamp, a signature over both and the bytes. Redirects
 * are not followed, answers not read. Never rejects, and says nothing of the URL, which may hold a token.
 */
export function createSender(deps: SenderDeps) {
  const { transport, timeoutMs } = deps
  return async (url: string, delivery: DueDelivery): Promise<TargetResponse> => {
    const deadline = AbortSignal.timeout(timeoutMs)
    try {
      const { headers, body } = requestFor(url, delivery, deps)
      const request = { method: 'POST' as const, url: new URL(url), headers, body }
      const answer = await transport.send(request, deadline)
      await passOver(answer.body)
      const wish = answer.headers['retry-after']
      return { status: answer.status, retryAfter: typeof wish === 'string' ? wish : null }
    } catch (error) {
      if (deadline.aborted)
        return { failure: `no answer within ${timeoutMs} ms${faultNotes(error)}` }
      return { failure: `no answer (${codeOf(error)})${faultNotes(error)}` }
    }
  }
}

/** A signed event; or, for a team workspace, a message. Its URL is its credential, so it has no signature. */
function requestFor(
  url: string,
  { webhookId, body }: DueDelivery,
  { sign, chat, userAgent, now }: SenderDeps,
): { headers: Record<string, string>; body: Buffer } {
  const agent = { 'user-agent': userAgent }
  if (chat.urls.has(url)) {
    const headers = { ...agent, 'content-type': 'application/json' }
    return { headers, body: chatBody(chat.template, body) }
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

/** What upstream's header said is not kept: an event in JSON is a CloudEvent, as those of the contract are. */
function typeOf(body: Uint8Array): string {
  const first = Buffer.from(body.subarray(0, 64)).toString('utf8').trimStart().charAt(0)
  if (first === '{') return 'application/cloudevents+json'
  return first === '[' ? 'application/cloudevents-batch+json' : 'application/octet-stream'
}

/** An answer's body that takes longer is cut off with its connection, milliseconds. */
const BODY_MS = 1_000

/** Lets a body go by, within the attempt: one that does not end holds up nothing but its own target. */
async function passOver(body: RawAnswer['body']): Promise<void> {
  const cut = setTimeout(() => body.destroy(), BODY_MS)
  await body.dump().catch(() => undefined)
  clearTimeout(cut)
}

function codeOf(error: unknown): string {
  const cause = error instanceof Error ? error.cause : undefined
  return systemCode(error) ?? systemCode(cause) ?? 'the connection failed'
}

/** Signs a message: its id, the time of the attempt in unix seconds, its bytes. */
type Sign = (webhookId: string, timestamp: number, body: Buffer) => string

/**
 * Signatures of the body's very bytes, for upstream's are passed on as they came: as Standard Webhooks has them (`v1,` and
 * base64), as the vendor's receiver has them (`v1,` and hex, keyed with the whole secret), or both in one header, of which a
 * receiver takes the one that it knows. Throws for a secret that is not base64 where that is needed; the settings refuse it.
 */
export function createSigner(secret: string, dialect: (typeof RELAY_DIALECTS)[number]): Sign {
  const dialects = dialect === 'both' ? (['standard', 'vendor'] as const) : [dialect]
  return (id, timestamp, body) =>
    dialects
      .map((one) => {
        const signature = signDelivery({ id, timestamp, body, secret, dialect: one })
        if (signature === null) throw new Error('the secret of the relay is not base64')
        return signature
      })
      .join(' ')
}

/** The secret as it is told to whoever receives, from the mirror's own key. */
export function writeSecret(key: Buffer): string {
  return `whsec_${key.toString('base64')}`
}
