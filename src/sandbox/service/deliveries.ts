import { createHmac, randomUUID } from 'node:crypto'
import { seconds } from '../generate.ts'
import type { Tag } from './generate-images.ts'
import type { ServiceOptions } from './options.ts'
import type { Webhook } from './webhooks.ts'

/** The outcome of a delivery (service API, section 2). */
export interface DeliveryResult {
  id: string
  subscription_id: string
  event_id: string
  status: 'delivered' | 'failed'
  http_status: number | null
  sent_at: string
  error_reason: string | null
  type: string
}

/** Sends signed events to registered endpoints. */
export interface Deliverer {
  /** Keeps the secret that a subscription's events are signed with. */
  remember(subscription: string, secret: string): void
  forget(subscription: string): void
  /** One attempt; never rejects, a failure is a result. */
  deliver(webhook: Webhook, tag: Tag, type: string): Promise<DeliveryResult>
}

/** Signs in the dialect of the options, by the given clock. */
export function createDeliverer(options: ServiceOptions, now: () => number): Deliverer {
  const secrets = new Map<string, string>()
  const { dialect = 'standard', deliveryTimeoutMs = 5000 } = options
  return {
    remember: (subscription, secret) => void secrets.set(subscription, secret),
    forget: (subscription) => void secrets.delete(subscription),
    async deliver(webhook, tag, type) {
      const eventId = randomUUID()
      const body = JSON.stringify(eventOf(tag, type, eventId, now()))
      const timestamp = String(Math.floor(now() / 1000))
      const secret = secrets.get(webhook.id) ?? ''
      const headers = {
        'content-type': 'application/cloudevents+json',
        'webhook-id': eventId,
        'webhook-timestamp': timestamp,
        'webhook-signature': `v1,${signature(dialect, secret, `${eventId}.${timestamp}.${body}`)}`,
      }
      const outcome = await post(webhook.url, headers, body, deliveryTimeoutMs)
      const about = { id: randomUUID(), subscription_id: webhook.id, event_id: eventId }
      return { ...about, ...outcome, sent_at: seconds(now()), type }
    },
  }
}

/** Standard Webhooks: decoded key, base64. The vendor's own: the whole secret as key, hex (wire facts). */
export function signature(dialect: 'standard' | 'vendor', secret: string, content: string): string {
  if (dialect === 'vendor') return createHmac('sha256', secret).update(content).digest('hex')
  const key = Buffer.from(secret.replace(/^whsec_/, ''), 'base64')
  return createHmac('sha256', key).update(content).digest('base64')
}

function eventOf(tag: Tag, type: string, id: string, time: number): object {
  const { image, name, digest } = tag
  return {
    specversion: '1.0',
    id,
    source: 'https://service.example.com/registry',
    type,
    subject: `cr.example.com/${image.repository}:${name}`,
    time: seconds(time),
    data: { image_repo: image.repository, image_tag: name, image_digest: digest, arch: 'amd64' },
  }
}

type Outcome = Pick<DeliveryResult, 'status' | 'http_status' | 'error_reason'>

/** A redirect is not followed: what is signed goes to the registered endpoint only. */
async function post(
  url: string,
  headers: Record<string, string>,
  body: string,
  timeoutMs: number,
): Promise<Outcome> {
  try {
    const signal = AbortSignal.timeout(timeoutMs)
    const answer = await fetch(url, { method: 'POST', headers, body, redirect: 'manual', signal })
    await answer.body?.cancel()
    if (answer.ok) return { status: 'delivered', http_status: answer.status, error_reason: null }
    const reason = `the endpoint answered ${answer.status}`
    return { status: 'failed', http_status: answer.status, error_reason: reason }
  } catch (error) {
    const reason = error instanceof Error ? error.message : String(error)
    return { status: 'failed', http_status: null, error_reason: reason }
  }
}
