import { MirrorError } from '../errors.ts'
import type { Config } from '../config/schema.ts'
import { type Item, type WebhooksApi, webhooksApi } from '../upstream/service-api.ts'
import { readKeptSecrets } from './held-secrets.ts'
import { withSecretKeeper } from './secret-keeper.ts'
import {
  type ServiceOptions,
  beyondContract,
  named,
  printItem,
  printItems,
  withSession,
} from './service.ts'
import { print } from './setup.ts'
import { moment } from './table.ts'

/** What the messages name as the place to look. */
export const LIST = 'webhooks list'
const COLUMNS = ['id', 'url', 'event_types', 'description', 'created_at', 'held']

/** Calls `work` with the service's webhook settings. */
export function withWebhooks<T>(
  options: ServiceOptions,
  work: (api: WebhooksApi, config: Config) => Promise<T>,
): Promise<T> {
  return withSession(options, 'settings', (session, config) => {
    const { maxRecordBytes, vendor } = config.upstream
    return work(webhooksApi(session, maxRecordBytes, vendor), config)
  })
}

/** `patchmirror webhooks list`: `held` says whether this mirror has the secret, and until when it counts. */
export function listWebhooksCommand(options: ServiceOptions): Promise<number> {
  return withWebhooks(options, async (api, config) => {
    const kept = readKeptSecrets(config)
    const items = await beyondContract('list webhook subscriptions', api.list())
    const shown = items.map((item): Item => {
      const own = kept.filter(({ subscription }) => subscription === item['id'])
      const [first] = own
      const until = first?.notAfter ?? null
      const held = until === null ? 'yes' : `until ${moment(until)}`
      return { ...item, held: first === undefined ? 'no' : held }
    })
    printItems(shown, COLUMNS, options)
    return 0
  })
}

/** `patchmirror webhooks test ID [TAG]`: a real delivery. 1 when it failed. */
export function testWebhookCommand(
  id: string,
  given: string | undefined,
  options: ServiceOptions & { tag?: string },
): Promise<number> {
  const tagId = given ?? options.tag
  if (tagId === undefined)
    throw new MirrorError('usage', 'give the id of a tag that the service has: --tag ID')
  return withWebhooks(options, async (api) => {
    const result = await testDelivery(api, id, tagId)
    printItem(result, options)
    return isDelivered(result) ? 0 : 1
  })
}

/** Has the service send a real event about a tag. Throws `upstream_not_found` with what is not there. */
export function testDelivery(api: WebhooksApi, id: string, tagId: string): Promise<Item> {
  return named(`webhook subscription ${id}, or no tag ${tagId}`, LIST, api.test(id, tagId))
}

/** Whether a delivery result tells of success. */
export function isDelivered(result: Item): boolean {
  return result['status'] !== 'failed'
}

/** `patchmirror webhooks delete ID`: the subscription, and its secret here. */
export function deleteWebhookCommand(id: string, options: ServiceOptions): Promise<number> {
  const what = `webhook subscription ${id}`
  return withWebhooks(options, (api, config) =>
    withSecretKeeper(config, async (keeper) => {
      await named(what, LIST, api.remove(id))
      const held = keeper.list()
      const left = held.filter(({ subscription }) => subscription !== id)
      const secretRemoved = left.length < held.length
      if (secretRemoved) keeper.replace(left)
      const secret = secretRemoved ? ', and its secret is gone from here' : ''
      if (options.json === true) print(JSON.stringify({ deleted: [id], secretRemoved }))
      else print(`${what} is deleted${secret}`)
      return 0
    }),
  )
}
