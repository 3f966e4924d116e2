import { withReads } from '../../../store/reads.ts'
import { MirrorError } from '../../../base/errors.ts'
import { secretFilePath } from '../../../config/kinds/webhooks.ts'
import type { Config } from '../../../config/schema.ts'
import { type Item, itemIdOf } from '../service-answer.ts'
import { type Tested, type WebhooksApi, webhooksApi } from '../service-api.ts'
import { readKeptSecrets } from '../../../cli/webhooks/secrets.ts'
import { withSecretKeeper } from './secrets.ts'
import type { Session } from '../../../upstream/http/session.ts'
import {
  type AskWithin,
  type ServiceCommandOptions,
  beyondContract,
  isBeyondContract,
  named,
  printItem,
  printItems,
  withSession,
} from '../session.ts'
import { print, warn } from '../../../cli/context.ts'
import { timeOf } from '../../../cli/output.ts'

/** What the messages name as the place to look. */
export const LIST = 'webhooks list'
const COLUMNS = ['id', 'url', 'event_types', 'description', 'created_at', 'held']

/** Calls `work` with the service's webhook settings. */
export function withWebhooks<T>(
  options: ServiceCommandOptions,
  work: (api: WebhooksApi, config: Config, within: AskWithin<WebhooksApi>) => Promise<T>,
): Promise<T> {
  return withSession(options, 'settings', (session, config, within) => {
    const { maxRecordBytes, vendor } = config.upstream
    const apiOf = (one: Session) => webhooksApi(one, maxRecordBytes, vendor)
    return work(apiOf(session), config, (ms, ask) => within(ms, (one) => ask(apiOf(one))))
  })
}

/** `patchmirror webhooks list`: `held` shows whether this mirror has the secret, and until when it is valid. */
export function listWebhooksCommand(options: ServiceCommandOptions): Promise<number> {
  return withWebhooks(options, async (api, config) => {
    const stored = readKeptSecrets(config)
    const items = await beyondContract('list webhook subscriptions', api.list())
    const shown = items.map((item): Item => {
      const own = stored.filter(({ subscription }) => subscription === itemIdOf(item))
      const [first] = own
      const until = first?.notAfter ?? null
      const validity = until === null ? 'yes' : `until ${timeOf(until)}`
      return { ...item, held: first === undefined ? 'no' : validity }
    })
    printItems(shown, COLUMNS, options)
    return 0
  })
}

/** `patchmirror webhooks test ID [TAG]`: a real delivery, without TAG about one that is mirrored. 1 when it failed. */
export function testWebhookCommand(
  id: string | undefined,
  given: string | undefined,
  options: ServiceCommandOptions & { tag?: string },
): Promise<number> {
  if (id === undefined)
    throw new MirrorError('usage', `name a subscription ("patchmirror ${LIST}" shows them), or an endpoint with --url`)
  return withWebhooks(options, async (api, config) => {
    const tagId = given ?? options.tag ?? anyMirroredTag(config)
    if (tagId === null) throw new MirrorError('usage', NO_TAG)
    const { item, state } = await testDelivery(api, id, tagId)
    printItem(item, options)
    if (state === null) warn(NO_STATUS)
    return state === null || state === 'failed' ? 1 : 0
  })
}

const NO_STATUS =
  'the answer of the service has no status (delivered, pending or failed), so what became of the test is not known: ' +
  'see "patchmirror webhooks inbox"'
const NO_TAG = 'no tag is mirrored here yet: give the id of one that the service has (--tag ID); /v1/tags/ lists them'

/** Has the service send a real event about a tag. Throws `upstream_not_found` with what is not there. */
export function testDelivery(api: WebhooksApi, id: string, tagId: string): Promise<Tested> {
  const what = `webhook subscription ${id}, or no tag ${tagId} (ids of tags are in /v1/tags/)`
  return named(what, LIST, api.test(id, tagId))
}

/** What became of a subscription that is to be deleted. */
const ENDS: Readonly<Record<Removal, string>> = {
  deleted: 'is deleted',
  gone: 'was gone from the service already',
  left: 'is still at the service',
}

/** `patchmirror webhooks delete ID`: the subscription, and its secret here, also when the service has it no more. 1 when it is still there. */
export function deleteWebhookCommand(id: string, options: ServiceCommandOptions): Promise<number> {
  return withWebhooks(options, async (api, config) => {
    const hasSecret = readKeptSecrets(config).some(({ subscription }) => subscription === id)
    const removed = hasSecret
      ? await withSecretKeeper(config, async (keeper) => {
          const there = await removeIfThere(api, id)
          keeper.replace(keeper.list().filter(({ subscription }) => subscription !== id))
          return there
        })
      : await removeIfThere(api, id)
    const secret = hasSecret ? ', and its secret is gone from here' : ''
    const text = `webhook subscription ${id} ${ENDS[removed]}${secret}`
    return reportRemoval(config, { id, removed, hasSecret, staying: othersOf(config, id), text }, options)
  })
}

/** What became of a subscription, and whether its secret was stored here; `staying`: the subscriptions that remain; `text` says it. */
interface Removed {
  readonly id: string
  readonly removed: Removal
  readonly hasSecret: boolean
  readonly staying: readonly string[]
  readonly text: string
}

/** Prints what became of a subscription, and warns of what is left to do. Returns the exit code. Throws `upstream_not_found`. */
export function reportRemoval(
  config: Config,
  { id, removed, hasSecret, staying, text }: Removed,
  { json }: ServiceCommandOptions,
): number {
  if (removed === 'gone' && !hasSecret) throw unknownSubscription(id)
  const todo = removed === 'left' ? todoOf(id, staying) : null
  const deleted = removed === 'deleted' ? [id] : []
  if (json === true) print(JSON.stringify({ deleted, secretRemoved: hasSecret, ...(todo !== null && { todo }) }))
  else print(text)
  if (!hasSecret) warnOfUnnamed(config, id)
  if (todo !== null) warn(todo)
  return todo === null ? 0 : 1
}

/** The error for a subscription that the service does not have. */
export function unknownSubscription(id: string): MirrorError {
  const text = `the service has no webhook subscription ${id}; "patchmirror ${LIST}" shows what it has`
  return new MirrorError('upstream_not_found', text)
}

/** Warns where a stored secret may be that of a subscription, because it is not known whose it is. */
function warnOfUnnamed(config: Config, id: string): void {
  const unnamed = readKeptSecrets(config).filter(({ subscription }) => subscription === null)
  if (unnamed.length === 0) return
  const labels = unnamed.map(({ label }) => label).join(', ')
  warn(
    `no stored secret is known to be of ${id}, and none was removed: ${labels} in ${secretFilePath(config)} stays accepted; remove its entry there if it is the one`,
  )
}

/** Returns the other subscriptions whose secrets are stored here. */
function othersOf(config: Config, id: string): string[] {
  const ids = readKeptSecrets(config).flatMap(({ subscription }) => subscription ?? [])
  return ids.filter((one) => one !== id)
}

/** Returns what is left to do by hand where the service has no DELETE. `staying`: the subscriptions that remain. */
export function todoOf(id: string, staying: readonly string[]): string {
  const others =
    staying.length === 0 ? 'No other subscription has a secret here' : `${staying.join(', ')} stays in force`
  return (
    `to do: the service cannot delete webhook subscriptions over its API, so ${id} still sends. Remove ${id} in the ` +
    `platform, or ask its operator. ${others}.`
  )
}

/** What became of a subscription that was to be removed; `left`: the service has no DELETE, and it is still there. */
export type Removal = 'deleted' | 'gone' | 'left'

/** Deletes a subscription. A 404 may mean a missing operation: then the list decides; without a list it is `left`. */
export async function removeIfThere(api: WebhooksApi, id: string): Promise<Removal> {
  try {
    await api.remove(id)
    return 'deleted'
  } catch (error) {
    if (!isBeyondContract(error)) throw error
    const items = await api.list().catch((fault: unknown) => {
      if (isBeyondContract(fault)) return null
      throw fault
    })
    return items === null || items.some((item) => itemIdOf(item) === id) ? 'left' : 'gone'
  }
}

/** The id of any tag of the service's that is mirrored here; null when there is none. */
export function anyMirroredTag({ data }: Config): string | null {
  return withReads(data.dir, ({ catalog }) => {
    const list = catalog.readList('/v1/tags')
    return list === null ? null : catalog.findEntryWith(list.id, [])
  })
}
