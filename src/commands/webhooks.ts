import { MirrorError } from '../errors.ts'
import type { Config } from '../config/schema.ts'
import { type Item, type WebhooksApi, webhooksApi } from '../upstream/service-api.ts'
import { readKeptSecrets } from './held-secrets.ts'
import { heldTag } from './held-tag.ts'
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

/** `patchmirror webhooks test ID [TAG]`: a real delivery, without TAG about one that is mirrored. 1 when it failed. */
export function testWebhookCommand(
  id: string,
  given: string | undefined,
  options: ServiceOptions & { tag?: string },
): Promise<number> {
  return withWebhooks(options, async (api, config) => {
    const tagId = given ?? options.tag ?? heldTag(config)
    if (tagId === null) throw new MirrorError('usage', NO_TAG)
    const result = await testDelivery(api, id, tagId)
    printItem(result, options)
    return isFailed(result) ? 1 : 0
  })
}

const NO_TAG =
  'no tag is mirrored here yet: give the id of one that the service has (--tag ID); /v1/tags/ lists them'

/** Has the service send a real event about a tag. Throws `upstream_not_found` with what is not there. */
export function testDelivery(api: WebhooksApi, id: string, tagId: string): Promise<Item> {
  const what = `webhook subscription ${id}, or no tag ${tagId} (ids of tags are in /v1/tags/)`
  return named(what, LIST, api.test(id, tagId))
}

/** What became of a delivery, by its result: one that is pending is neither. */
export const isDelivered = (result: Item): boolean => result['status'] === 'delivered'
const isFailed = (result: Item): boolean => result['status'] === 'failed'

/** `patchmirror webhooks delete ID`: the subscription, and its secret here, also when the service has it no more. */
export function deleteWebhookCommand(id: string, options: ServiceOptions): Promise<number> {
  const what = `webhook subscription ${id}`
  return withWebhooks(options, async (api, config) => {
    const isHeld = readKeptSecrets(config).some(({ subscription }) => subscription === id)
    const deleted = isHeld
      ? await withSecretKeeper(config, async (keeper) => {
          const there = await removeIfThere(api, id)
          keeper.replace(keeper.list().filter(({ subscription }) => subscription !== id))
          return there
        })
      : await named(what, LIST, api.remove(id)).then(() => true)
    const end = deleted ? 'is deleted' : 'was gone from the service already'
    const secret = isHeld ? ', and its secret is gone from here' : ''
    if (options.json === true)
      print(JSON.stringify({ deleted: deleted ? [id] : [], secretRemoved: isHeld }))
    else print(`${what} ${end}${secret}`)
    return 0
  })
}

/** Deletes a subscription; false when the service has none of this id. */
export async function removeIfThere(api: WebhooksApi, id: string): Promise<boolean> {
  try {
    await api.remove(id)
    return true
  } catch (error) {
    if (error instanceof MirrorError && error.code === 'upstream_not_found') return false
    throw error
  }
}
