import { isObject, jsonTextOf, parseExactly } from '../../base/json/objects.ts'
import { MirrorError } from '../../base/errors.ts'
import { counted } from '../../base/text.ts'
import { type DeliveryState, type Item, type Made, deliveryStateIn, itemIn, secretIn } from './service-answer.ts'
import { type Session, pathAsked } from '../../upstream/http/session.ts'
import type { Method } from '../../upstream/http/transport.ts'
import { collectList } from '../../upstream/lists/collect.ts'

/** Properties of a new key; the service chooses those that are absent. */
interface NewApiKey {
  name: string
  role?: string
  type?: string
  expires_at?: string
}

/** Ids of the targets to subscribe to; at least one. */
interface Targets {
  tags: readonly string[]
  images: readonly string[]
  packages: readonly string[]
}

/** A webhook subscription to register (spec section 2). */
export interface NewWebhook {
  url: string
  description: string
  event_types: readonly string[]
}

/** API keys (spec section 4). `create` returns the key itself, once. */
export type ApiKeysApi = ReturnType<typeof apiKeysApi>

/** Subscriptions (spec section 4); adding and removing are bulk operations with the ids in the body. */
export type SubscriptionsApi = ReturnType<typeof subscriptionsApi>

/** A test delivery; `state` null: the response does not contain its state. */
export interface Tested {
  readonly item: Item
  readonly state: DeliveryState | null
}

/**
 * Webhook settings (spec section 4), with the list and delete operations that deployments have in addition to the
 * contract.
 */
export type WebhooksApi = ReturnType<typeof webhooksApi>

/** A session with one surface and the cap on its responses, bytes. */
interface Caller {
  session: Session
  maxBytes: number
}

/** The account operations; a session with the remediation surface. */
export function accountApi(session: Session, maxBytes: number) {
  return {
    me: async (): Promise<Item> => itemOf('/me', await fetchJson(session, '/me', maxBytes)),
    organization: async (): Promise<Item> => itemOf('/orgs/', await fetchJson(session, '/orgs/', maxBytes)),
  }
}

/** The API key operations; a session with the remediation surface. */
export function apiKeysApi(session: Session, maxBytes: number) {
  const caller = { session, maxBytes }
  const path = '/api_keys/'
  const one = (id: string): string => `${path}${encodeURIComponent(id)}/`
  return {
    async create(key: NewApiKey): Promise<Made> {
      const answer = await send(caller, 'POST', path, key)
      const secret = secretIn(answer, Object.values({ ...key }))
      return { item: itemIn(path, answer, 'key'), secret }
    },
    list: async (): Promise<Item[]> => itemsOf(path, await fetchList(session, path, maxBytes)),
    show: async (id: string): Promise<Item> => itemOf(one(id), await fetchJson(session, one(id), maxBytes)),
    async remove(id: string): Promise<void> {
      await send(caller, 'DELETE', one(id))
    },
  }
}

/** The subscription operations; `vendor` names the field of tag ids: `<vendor>_registry_tag_ids`. */
export function subscriptionsApi(session: Session, maxBytes: number, vendor: string) {
  const caller = { session, maxBytes }
  const path = '/subscriptions/'
  return {
    async add({ tags, images, packages }: Targets): Promise<Item[]> {
      const named = {
        [`${vendor}_registry_tag_ids`]: tags,
        image_ids: images,
        package_ids: packages,
      }
      const given = Object.entries(named).filter(([, ids]) => ids.length > 0)
      const answer = await send(caller, 'POST', path, Object.fromEntries(given))
      return itemsOf(path, Array.isArray(answer) ? answer : madeBy(answer))
    },
    list: async (): Promise<Item[]> => itemsOf(path, await fetchList(session, path, maxBytes)),
    async show(id: string): Promise<Item> {
      const one = `${path}${encodeURIComponent(id)}/`
      return itemOf(one, await fetchJson(session, one, maxBytes))
    },
    async remove(ids: readonly string[]): Promise<void> {
      await send(caller, 'DELETE', path, { subscription_ids: ids })
    },
  }
}

/** Returns the items of a bulk response: a list, one object, or empty. */
function madeBy(answer: unknown): readonly unknown[] {
  if (answer === null) return []
  const arrays = Object.values(answer as Item).filter((value) => Array.isArray(value))
  const [only] = arrays
  return only !== undefined && arrays.length === 1 ? only : [answer]
}

/** The webhook operations; a session with the webhook settings (`/v3`). */
export function webhooksApi(session: Session, maxBytes: number, vendor: string) {
  const caller = { session, maxBytes }
  const path = '/settings/webhooks'
  const one = (id: string): string => `${path}/${encodeURIComponent(id)}`
  return {
    async register(webhook: NewWebhook): Promise<Made> {
      const answer = await send(caller, 'POST', path, webhook)
      const secret = secretIn(answer, [webhook.url, webhook.description])
      return { item: itemIn(path, answer, 'webhook'), secret }
    },
    async list(): Promise<Item[]> {
      const items = await fetchList(session, path, maxBytes)
      return items.map((item) => itemIn(path, item, 'webhook'))
    },
    /** Sends a real delivery for a tag. 404: subscription or tag unknown; 422: not subscribed to the event. */
    async test(id: string, tagId: string): Promise<Tested> {
      const place = `${one(id)}/test-tag-created`
      const json = { [`${vendor}_registry_tag_id`]: tagId }
      const answer = await send(caller, 'POST', place, json)
      return { item: itemIn(place, answer, 'delivery'), state: deliveryStateIn(answer) }
    },
    async remove(id: string): Promise<void> {
      await send(caller, 'DELETE', one(id))
    },
  }
}

/** The users of the organization; a session with the identity surface. */
export async function fetchUsers(session: Session, maxBytes: number): Promise<Item[]> {
  return itemsOf('/users', await fetchList(session, '/users', maxBytes))
}

async function send({ session, maxBytes }: Caller, method: Method, path: string, json?: unknown): Promise<unknown> {
  const { body } = await session.request({ method, path, json, maxBytes })
  // The body of a DELETE response is ignored.
  return method === 'DELETE' ? null : parseJson(pathAsked(session, path), body)
}

function itemOf(path: string, value: unknown): Item {
  if (isObject(value)) return value
  throw new MirrorError('upstream_shape', `${path}: the answer is not a JSON object`)
}

function itemsOf(path: string, values: readonly unknown[]): Item[] {
  return values.map((value) => itemOf(path, value))
}

/**
 * Fetches all items of a list into memory, for commands. Throws `upstream_shape` when a page is not a list, the pages
 * form a cycle, or the list is incomplete.
 */
async function fetchList(session: Session, path: string, maxBytes: number): Promise<unknown[]> {
  const { pages, cut } = await collectList(session, path, { maxBytes, refuse: () => null })
  const items = pages.flatMap(({ shape }) => shape.items)
  if (cut === null) return items
  const message = `${pathAsked(session, path)}: only ${counted(items.length, 'item')} of the list could be read: ${cut}`
  throw new MirrorError('upstream_shape', message)
}

/** Fetches a JSON response to a GET. Throws `upstream_shape` when it is not JSON. */
async function fetchJson(session: Session, path: string, maxBytes: number): Promise<unknown> {
  const { body } = await session.request({ method: 'GET', path, maxBytes })
  return parseJson(pathAsked(session, path), body)
}

/** Parses a body; null for an empty one (204). Throws `upstream_shape` when it is not JSON. */
function parseJson(path: string, body: Buffer): unknown {
  if (body.length === 0) return null
  try {
    return parseExactly(jsonTextOf(body))
  } catch (error) {
    throw new MirrorError('upstream_shape', `${path}: the answer is not JSON`, { cause: error })
  }
}
