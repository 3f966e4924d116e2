import { randomBytes } from 'node:crypto'
import { seconds } from '../../feed/generate.ts'
import { type NegotiatedAnswer, jsonAnswer } from '../../http/negotiate.ts'
import { type Call, type ServiceRequest, ServiceError, bodyObject, missing } from '../request.ts'
import type { Parts } from '../parts.ts'
import { emptyReply, recordReply } from '../replies.ts'
import type { Route } from '../router.ts'
import { worded } from '../shapes/record.ts'
import type { Webhook } from '../events/deliveries.ts'
import { mayWrite } from './account.ts'
import { action, asked, get, listRow } from './artifacts.ts'

const PATH = '/v3/settings/webhooks'
const ONE = `${PATH}/{webhookSubscriptionID}`

/** Webhook settings (service API, section 4), with the list, read and delete that a public deployment has. */
export function webhookRoutes(parts: Parts): Route[] {
  const { webhooks } = parts.state
  const known = (call: Call) => {
    mayWrite(call.caller)
    return asked(call, webhooks, 'webhook subscription').listed
  }
  const shown = [
    action('POST', PATH, (call) => register(parts, call)),
    action('POST', `${ONE}/test-tag-created`, (call) => test(parts, call, known(call))),
  ]
  if (!parts.shape.settings.complete) return shown
  return [
    ...shown,
    listRow(PATH, webhooks, parts.shape),
    get(ONE, 'item', (call) => {
      const { listed, lastModified } = asked(call, webhooks, 'webhook subscription')
      return recordReply(wrapped(parts, 'webhook', listed), lastModified)
    }),
    action('DELETE', ONE, (call) => {
      const { id } = known(call)
      webhooks.remove(id)
      parts.deliverer.forget(id)
      return emptyReply()
    }),
  ]
}

/** An answer of the settings as a shape has it. */
function wrapped({ shape }: Parts, noun: 'webhook' | 'delivery', record: object): object {
  const { wrap } = shape.settings
  const shown = worded(shape.records, noun, record)
  if (wrap === 'none') return shown
  return { [wrap === 'noun' ? noun : 'data']: shown }
}

/** The only answer that contains the secret. */
function register(parts: Parts, { request, caller }: Call): NegotiatedAnswer {
  const { state, deliverer, options, shape, now } = parts
  mayWrite(caller)
  const time = Math.floor(now() / 1000) * 1000
  const at = seconds(time)
  const id = state.newId('webhook')
  const listed: Webhook = {
    id,
    organization_id: state.organization.id,
    ...readWebhook(request),
    created_at: at,
    updated_at: at,
  }
  const secret = options.webhookSecret ?? `whsec_${randomBytes(24).toString('base64')}`
  state.webhooks.put({ id, lastModified: time, listed, detail: {} })
  deliverer.remember(id, secret)
  return jsonAnswer(201, wrapped(parts, 'webhook', { ...listed, [shape.settings.secret]: secret }))
}

async function test(parts: Parts, { request }: Call, webhook: Webhook): Promise<NegotiatedAnswer> {
  const { state, deliverer, options } = parts
  const { service_registry_tag_id: tagId } = bodyObject(request)
  if (typeof tagId !== 'string' && typeof tagId !== 'number')
    throw new ServiceError(400, 'service_registry_tag_id is required')
  const tag = state.tags.get(String(tagId))
  if (tag === undefined) throw missing('tag', String(tagId))
  const type = options.eventType ?? EVENT_TYPE
  if (!webhook.event_types.includes(type)) {
    throw new ServiceError(422, `the subscription does not subscribe to ${type}`)
  }
  const result = await deliverer.deliver(webhook, [tag.listed], type)
  return jsonAnswer(200, wrapped(parts, 'delivery', result))
}

/** The event type of the contract (service API, section 6). */
export const EVENT_TYPE = 'io.service.cr.image.created.v1'

const LOOPBACK = ['127.0.0.1', 'localhost', '[::1]']

/** HTTPS, as the contract has it; plain HTTP for a loopback address, so that tests can listen. */
function readWebhook(request: ServiceRequest): Pick<Webhook, 'url' | 'description' | 'event_types'> {
  const { url, description = '', event_types: types } = bodyObject(request)
  const target = typeof url === 'string' && URL.canParse(url) ? new URL(url) : undefined
  const isPlain = target?.protocol === 'http:' && LOOPBACK.includes(target.hostname)
  if (target === undefined || (target.protocol !== 'https:' && !isPlain)) {
    throw new ServiceError(400, 'url must be an https URL')
  }
  if (typeof description !== 'string') throw new ServiceError(400, 'description must be a text')
  if (!Array.isArray(types) || !types.every((type) => typeof type === 'string')) {
    throw new ServiceError(400, 'event_types must be an array of texts')
  }
  return { url: String(url), description, event_types: types }
}
