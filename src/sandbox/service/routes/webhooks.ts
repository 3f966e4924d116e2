import { randomBytes, randomUUID } from 'node:crypto'
import { seconds } from '../../generate.ts'
import type { Answer } from '../../negotiate.ts'
import { jsonAnswer } from '../../refusal.ts'
import { type Call, type ServiceRequest, ServiceError, bodyObject, missing } from '../call.ts'
import type { Parts } from '../parts.ts'
import { emptyReply } from '../replies.ts'
import type { Route } from '../router.ts'
import type { Webhook } from '../webhooks.ts'
import { mayWrite } from './account.ts'
import { action, asked, itemRow, listRow } from './rows.ts'

const PATH = '/v3/settings/webhooks'
const ONE = `${PATH}/{webhookSubscriptionID}`

/** Webhook settings (service API, section 4), with the list, read and delete that a public deployment has. */
export function webhookRoutes(parts: Parts): Route[] {
  const { webhooks } = parts.state
  const known = (call: Call) => {
    mayWrite(call.caller)
    return asked(call, webhooks, 'webhook subscription').listed
  }
  return [
    action('POST', PATH, (call) => register(parts, call)),
    listRow(PATH, webhooks, parts.shape),
    itemRow(ONE, webhooks, 'webhook subscription'),
    action('DELETE', ONE, (call) => {
      const { id } = known(call)
      webhooks.remove(id)
      parts.deliverer.forget(id)
      return emptyReply()
    }),
    action('POST', `${ONE}/test-tag-created`, (call) => test(parts, call, known(call))),
  ]
}

/** The only answer that holds the secret. */
function register({ state, deliverer, options, now }: Parts, { request, caller }: Call): Answer {
  mayWrite(caller)
  const time = Math.floor(now() / 1000) * 1000
  const at = seconds(time)
  const id = randomUUID()
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
  return jsonAnswer(201, { ...listed, secret })
}

async function test(
  { state, deliverer, options }: Parts,
  { request }: Call,
  webhook: Webhook,
): Promise<Answer> {
  const { service_registry_tag_id: tagId } = bodyObject(request)
  if (typeof tagId !== 'string') throw new ServiceError(400, 'service_registry_tag_id is required')
  const tag = state.tags.get(tagId)
  if (tag === undefined) throw missing('tag', tagId)
  const type = options.eventType ?? EVENT_TYPE
  if (!webhook.event_types.includes(type)) {
    throw new ServiceError(422, `the subscription does not subscribe to ${type}`)
  }
  return jsonAnswer(200, await deliverer.deliver(webhook, tag.listed, type))
}

/** The event type of the contract (service API, section 6). */
export const EVENT_TYPE = 'io.service.cr.image.created.v1'

const LOOPBACK = ['127.0.0.1', 'localhost', '[::1]']

/** HTTPS, as the contract has it; plain HTTP for a loopback address, so that tests can listen. */
function readWebhook(
  request: ServiceRequest,
): Pick<Webhook, 'url' | 'description' | 'event_types'> {
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
