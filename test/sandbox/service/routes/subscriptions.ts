import { type NegotiatedAnswer, jsonAnswer } from '../../http/negotiate.ts'
import { type Call, ServiceError, bodyObject, missing } from '../request.ts'
import { type SubscribedItem, subscriptionTo } from '../data/people.ts'
import type { Parts } from '../parts.ts'
import { emptyReply } from '../replies.ts'
import type { Route } from '../router.ts'
import { worded } from '../shapes/record.ts'
import type { State } from '../data/state.ts'
import { mayWrite } from './account.ts'
import { action, itemRow, listRow } from './artifacts.ts'

const PATH = '/v1/subscriptions/'

/**
 * Subscriptions (service API, section 4). Both writing operations are bulk: the body is an object whose arrays
 * named `…ids` contain identifiers; on POST of tags, else of packages (`package_ids`) or images (`image_ids`).
 */
export function subscriptionRoutes(parts: Parts): Route[] {
  const { subscriptions } = parts.state
  return [
    action('POST', PATH, (call) => subscribe(parts, call)),
    listRow(PATH, subscriptions, parts.shape),
    itemRow(`${PATH}{subscriptionID}/`, subscriptions, 'subscription', parts.shape),
    action('DELETE', PATH, (call) => unsubscribe(parts, call)),
  ]
}

/** All or nothing: one unknown id refuses the whole. Subscribing twice gives the same subscription. */
function subscribe({ state, shape, now }: Parts, { request, caller }: Call): NegotiatedAnswer {
  mayWrite(caller)
  const targets = idsOf(bodyObject(request)).map(({ name, id }) => targetOf(state, name, id))
  const time = Math.floor(now() / 1000) * 1000
  const made = targets.map((target) => existing(state, target) ?? add(state, target, time))
  const listed = made.map((entry) => worded(shape.records, 'subscription', entry.listed))
  const key = shape.lists.items.at(-1)
  return jsonAnswer(201, key === undefined ? listed : { [key]: listed })
}

function unsubscribe({ state }: Parts, { request, caller }: Call): NegotiatedAnswer {
  mayWrite(caller)
  const ids = idsOf(bodyObject(request)).map(({ id }) => id)
  const unknown = ids.find((id) => state.subscriptions.get(id) === undefined)
  if (unknown !== undefined) throw missing('subscription', unknown)
  for (const id of ids) state.subscriptions.remove(id)
  return emptyReply()
}

function idsOf(body: Record<string, unknown>): { name: string; id: string }[] {
  const found = Object.entries(body).flatMap(([name, value]) =>
    name.endsWith('ids') && Array.isArray(value) ? value.map((id: unknown) => ({ name, id: String(id) })) : [],
  )
  if (found.length === 0) throw new ServiceError(400, 'the body must contain an array of ids')
  return found
}

/** One id may be both a tag's and a package's; the array's name decides. */
function targetOf(state: State, name: string, id: string): SubscribedItem {
  if (name.startsWith('package')) {
    const found = state.packages.get(id)
    if (found !== undefined) return { package: found }
    throw missing('package', id)
  }
  if (name.startsWith('image')) {
    const found = state.images.get(id)
    if (found !== undefined) return { image: found }
    throw missing('image', id)
  }
  const tag = state.tags.get(id)
  const other = state.packages.get(id)
  if (tag !== undefined) return { tag }
  if (other !== undefined) return { package: other }
  throw missing('tag or package', id)
}

function existing(state: State, target: SubscribedItem) {
  return state.subscriptions.all().find(({ listed }) => {
    if ('tag' in target) return listed.service_registry_tag_id === target.tag.id
    if ('package' in target) return listed.package_id === target.package.id
    return listed.image_id === target.image.listed.id
  })
}

function add(state: State, target: SubscribedItem, time: number) {
  const { subscriptions, organization } = state
  return subscriptions.put(subscriptionTo(target, state.newId('subscription'), organization.id, time))
}
