import { randomUUID } from 'node:crypto'
import { seconds } from '../../feed/generate.ts'
import type { Tag } from '../data/images.ts'
import type { ServiceOptions } from '../options.ts'
import { type ShownEvent, shownEvent } from '../shapes/event.ts'
import { shapeOf } from '../shapes/shape.ts'
import { signature } from './dialect.ts'

/** The outcome of a delivery (service API, section 2). */
export interface DeliveryAttempt {
  id: string
  subscription_id: string
  event_id: string
  status: 'delivered' | 'failed'
  http_status: number | null
  sent_at: string
  error_reason: string | null
  type: string
}

/** An event as it is sent, at every attempt the same bytes under the same id. */
export interface OutgoingEvent extends ShownEvent {
  id: string
  type: string
}

/** What is wrong with an attempt. */
interface Flaw {
  /** The signature is that of another body. */
  forged?: boolean
  /** Seconds by which the timestamp is in the past. */
  oldBy?: number
}

/** One attempt, and how long the endpoint asked to be left alone, milliseconds. */
interface Attempt {
  result: DeliveryAttempt
  retryAfterMs: number
  /** Unix seconds, as signed. */
  timestamp: number
}

/** Sends signed events to registered endpoints. */
export interface Deliverer {
  /** Keeps the secret that a subscription's events are signed with. */
  remember(subscription: string, secret: string): void
  forget(subscription: string): void
  /** The event of a new tag; of several where the envelope takes them, else of the first. */
  eventOf(tags: readonly [Tag, ...Tag[]], type: string): OutgoingEvent
  /** One attempt, under a timestamp of now; never rejects, a failure is a result. */
  attempt(webhook: Webhook, event: OutgoingEvent, flaw?: Flaw): Promise<Attempt>
  /** A new event and one attempt to deliver it. */
  deliver(webhook: Webhook, tags: readonly [Tag, ...Tag[]], type: string): Promise<DeliveryAttempt>
  /** Breaks off what is on its way. */
  stop(): void
}

/** Signs in the dialect of the options, by the given clock. */
export function createDeliverer(options: ServiceOptions, now: () => number): Deliverer {
  const secrets = new Map<string, string>()
  const { dialect = 'standard', deliveryTimeoutMs = 5000 } = options
  const stopping = new AbortController()
  const form = shapeOf(options.shape ?? 'wire').events
  const eventOf: Deliverer['eventOf'] = (tags, type) => {
    const id = randomUUID()
    return { id, type, ...shownEvent(form, { id, type, tags, time: now() }) }
  }
  const attempt: Deliverer['attempt'] = async (webhook, event, { forged, oldBy = 0 } = {}) => {
    const { id, type, body } = event
    const timestamp = Math.floor(now() / 1000) - oldBy
    const secret = secrets.get(webhook.id) ?? ''
    const signed = `${id}.${timestamp}.${body}${forged === true ? ' ' : ''}`
    const headers = {
      'content-type': event.contentType,
      ...event.headers,
      'webhook-id': id,
      'webhook-timestamp': String(timestamp),
      'webhook-signature': `v1,${signature(dialect, secret, signed)}`,
    }
    const sent_at = seconds(now())
    const signal = AbortSignal.any([stopping.signal, AbortSignal.timeout(deliveryTimeoutMs)])
    const { retryAfterMs, ...outcome } = await post(webhook.url, headers, body, signal)
    const about = { id: randomUUID(), subscription_id: webhook.id, event_id: id }
    return { result: { ...about, ...outcome, sent_at, type }, retryAfterMs, timestamp }
  }
  return {
    remember: (subscription, secret) => void secrets.set(subscription, secret),
    forget: (subscription) => void secrets.delete(subscription),
    eventOf,
    attempt,
    deliver: async (webhook, tags, type) => (await attempt(webhook, eventOf(tags, type))).result,
    stop: () => stopping.abort(),
  }
}

type Outcome = Pick<DeliveryAttempt, 'status' | 'http_status' | 'error_reason'> & {
  retryAfterMs: number
}

/** A redirect is not followed: what is signed goes to the registered endpoint only. */
async function post(url: string, headers: Record<string, string>, body: string, signal: AbortSignal): Promise<Outcome> {
  try {
    const answer = await fetch(url, { method: 'POST', headers, body, redirect: 'manual', signal })
    await answer.body?.cancel()
    const { status: http_status, ok } = answer
    if (ok) return { status: 'delivered', http_status, error_reason: null, retryAfterMs: 0 }
    const error_reason = `the endpoint answered ${http_status}`
    const retryAfterMs = (Number(answer.headers.get('retry-after')) || 0) * 1000
    return { status: 'failed', http_status, error_reason, retryAfterMs }
  } catch (error) {
    const error_reason = error instanceof Error ? error.message : String(error)
    return { status: 'failed', http_status: null, error_reason, retryAfterMs: 0 }
  }
}

/** A registered endpoint as it is shown; its secret is kept elsewhere (service API, section 2). */
export interface Webhook {
  id: string
  organization_id: string
  url: string
  description: string
  event_types: readonly string[]
  created_at: string
  updated_at: string
}
