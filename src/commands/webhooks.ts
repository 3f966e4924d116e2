import { MirrorError } from '../errors.ts'
import { type WebhooksApi, webhooksApi } from '../upstream/service-api.ts'
import { type SecretOptions, handOver } from './secret.ts'
import {
  type ServiceOptions,
  beyondContract,
  named,
  printItem,
  printItems,
  withSession,
} from './service.ts'
import { print } from './setup.ts'

/** Options of `patchmirror webhooks register`. */
export interface RegisterOptions extends SecretOptions {
  description?: string
  event?: string[]
}

const LIST = 'webhooks list'
const COLUMNS = ['id', 'url', 'event_types', 'description', 'created_at']

function withWebhooks<T>(
  options: ServiceOptions,
  work: (api: WebhooksApi, vendor: string) => Promise<T>,
): Promise<T> {
  return withSession(options, 'settings', (session, { upstream }) =>
    work(webhooksApi(session, upstream.maxRecordBytes, upstream.vendor), upstream.vendor),
  )
}

/** `patchmirror webhooks register URL`: the signing secret is shown, or written, once. */
export function registerWebhookCommand(url: string, options: RegisterOptions): Promise<number> {
  if (!/^https?:\/\/[^/]/i.test(url) || !URL.canParse(url))
    throw new MirrorError('usage', `${url} is not the URL of an endpoint`)
  return withWebhooks(options, (api, vendor) => {
    const webhook = {
      url,
      description: options.description ?? 'patchmirror',
      event_types: options.event ?? [`io.${vendor}.cr.image.created.v1`],
    }
    return handOver(() => api.register(webhook), options)
  })
}

/** `patchmirror webhooks list`. */
export function listWebhooksCommand(options: ServiceOptions): Promise<number> {
  return withWebhooks(options, async (api) => {
    printItems(await beyondContract('list webhook subscriptions', api.list()), COLUMNS, options)
    return 0
  })
}

/** `patchmirror webhooks test ID TAG`: a real delivery. 1 when it failed. */
export function testWebhookCommand(
  id: string,
  tagId: string,
  options: ServiceOptions,
): Promise<number> {
  return withWebhooks(options, async (api) => {
    const what = `webhook subscription ${id}, or no tag ${tagId}`
    const result = await named(what, LIST, api.test(id, tagId))
    printItem(result, options)
    return result['status'] === 'failed' ? 1 : 0
  })
}

/** `patchmirror webhooks delete ID`. */
export function deleteWebhookCommand(id: string, options: ServiceOptions): Promise<number> {
  const what = `webhook subscription ${id}`
  return withWebhooks(options, async (api) => {
    await named(what, LIST, api.remove(id))
    print(options.json === true ? JSON.stringify({ deleted: [id] }) : `${what} is deleted`)
    return 0
  })
}
