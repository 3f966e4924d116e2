import { systemCode } from '../errors.ts'
import type { DueDelivery } from '../store/outbox.ts'
import { type RawAnswer, type Transport, faultNotes } from '../upstream/transport.ts'
import type { Answer } from './outcome.ts'
import type { Sign } from './sign.ts'

/** What a delivery is sent with. */
export interface SenderDeps {
  readonly transport: Pick<Transport, 'send'>
  readonly sign: Sign
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
export function createSender({ transport, sign, timeoutMs, userAgent, now }: SenderDeps) {
  return async (url: string, { webhookId, body }: DueDelivery): Promise<Answer> => {
    const timestamp = Math.floor(now() / 1000)
    const deadline = AbortSignal.timeout(timeoutMs)
    try {
      const headers = {
        'content-type': typeOf(body),
        'user-agent': userAgent,
        'webhook-id': webhookId,
        'webhook-timestamp': String(timestamp),
        'webhook-signature': sign(webhookId, timestamp, body),
      }
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
