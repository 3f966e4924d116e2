import { MirrorError } from '../../base/errors.ts'
import { type SubscriptionsApi, subscriptionsApi } from './service-api.ts'
import { type ServiceCommandOptions, named, printItem, printItems, withSession } from './session.ts'
import { print } from '../../cli/context.ts'

/** Options of `patchmirror subscriptions add`: ids of what to subscribe to. */
interface AddOptions extends ServiceCommandOptions {
  tag?: string[]
  image?: string[]
  package?: string[]
}

const LIST = 'subscriptions list'

function withSubscriptions<T>(
  options: ServiceCommandOptions,
  work: (api: SubscriptionsApi, columns: string[]) => Promise<T>,
): Promise<T> {
  return withSession(options, 'remediation', (session, { upstream }) => {
    const { vendor, maxRecordBytes } = upstream
    const ids = [`${vendor}_registry_tag_id`, 'image_id', 'package_id']
    return work(subscriptionsApi(session, maxRecordBytes, vendor), ['id', ...ids, 'created_at'])
  })
}

/** `patchmirror subscriptions add --tag ID… --image ID… --package ID…`. */
export async function addSubscriptionsCommand(options: AddOptions): Promise<number> {
  const { tag: tags = [], image: images = [], package: packages = [] } = options
  if (tags.length + images.length + packages.length === 0)
    throw new MirrorError('usage', 'name what to subscribe to: --tag ID, --image ID or --package ID')
  return withSubscriptions(options, async (api, columns) => {
    const what = 'tag, image or package of one of these ids'
    const made = await named(what, LIST, api.add({ tags, images, packages }))
    printItems(made, columns, options)
    return 0
  })
}

/** `patchmirror subscriptions list [ID]`. */
export function listSubscriptionsCommand(id: string | undefined, options: ServiceCommandOptions): Promise<number> {
  return withSubscriptions(options, async (api, columns) => {
    if (id === undefined) printItems(await api.list(), columns, options)
    else printItem(await named(`subscription ${id}`, LIST, api.show(id)), options)
    return 0
  })
}

/** `patchmirror subscriptions remove ID…`: all at once, or none. */
export function removeSubscriptionsCommand(ids: readonly string[], options: ServiceCommandOptions): Promise<number> {
  return withSubscriptions(options, async (api) => {
    await named(`subscription ${ids.join(' or ')}`, LIST, api.remove(ids))
    if (options.json === true) print(JSON.stringify({ removed: ids }))
    else for (const id of ids) print(`subscription ${id} is removed`)
    return 0
  })
}
