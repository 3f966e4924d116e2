import { DAY_MS, duration, toIsoOrNull } from '../../../base/time.ts'
import type { Config } from '../../../config/schema.ts'
import { imageCreatedType } from '../../../base/domain/event-types.ts'
import { MirrorError } from '../../../base/errors.ts'
import { createInboxReads } from '../../../store/webhooks/inbox.ts'
import { type Item, type Made, itemIdOf, textOf } from '../service-answer.ts'
import type { WebhooksApi } from '../service-api.ts'
import type { KeptSecret } from '../../../webhooks/receive/secret-file.ts'
import { withInbox } from '../../../cli/webhooks/inbox-rows.ts'
import { type SecretKeeper, keepSecret, withSecretKeeper } from './secrets.ts'
import { type ServiceCommandOptions, beyondContract, isBeyondContract } from '../session.ts'
import { print, warn } from '../../../cli/context.ts'
import { timeOf } from '../../../cli/output.ts'
import {
  type Removal,
  removeIfThere,
  reportRemoval,
  todoOf,
  unknownSubscription,
  withWebhooks,
} from './subscriptions.ts'
import { type TriedOut, copyOf, printTest, refuseHostAlone, tryOut } from './register.ts'

/** Options of `patchmirror webhooks rotate`. */
interface RotateOptions extends ServiceCommandOptions {
  url?: string
  testTag?: string
  finish?: boolean
}

/** Published schedules of retries last 75 hours: so long a delivery signed with the old secret may still come. */
const GRACE_MS = 4 * DAY_MS

/**
 * `patchmirror webhooks rotate ID`: a new subscription and secret beside the old ones, both accepted. Once a test came
 * through, the old subscription is deleted and its secret expires after four days; without that, `--finish` does both at
 * once, when the inbox shows events under the new one. 1 when it has to be finished by hand.
 */
export function rotateWebhookCommand(id: string, options: RotateOptions): Promise<number> {
  return withWebhooks(options, (api, config) =>
    withSecretKeeper(config, (keeper) =>
      options.finish === true ? finish(api, config, keeper, id, options) : rotate(api, config, keeper, id, options),
    ),
  )
}

async function rotate(
  api: WebhooksApi,
  config: Config,
  keeper: SecretKeeper,
  id: string,
  options: RotateOptions,
): Promise<number> {
  // With an address given there is nothing to look up, which not every deployment can do.
  if (options.url !== undefined) refuseHostAlone(options.url, config)
  const old = options.url === undefined ? await find(api, id) : {}
  const made = await api.register(copyOf(old, options.url, imageCreatedType(config.upstream.vendor)))
  const stored = keepSecret(keeper, made)
  if (stored.problem !== null) {
    if (stored.secret !== null) print(`secret  ${stored.secret}`)
    warn(`the new secret is not in ${keeper.path}: ${stored.problem}. The old one stays in force`)
    return 1
  }
  const test = await tryOut(api, made, config, options.testTag)
  const passed = test?.delivered === true
  const removal = passed ? await retire(api, keeper, id, Date.now() + GRACE_MS) : null
  report(id, made, { test, removal }, keeper, options)
  return passed && removal !== 'left' ? 0 : 1
}

async function find(api: WebhooksApi, id: string): Promise<Item> {
  const what = 'list webhook subscriptions, so give --url, the address of the endpoint'
  const items = await beyondContract(what, api.list())
  const old = items.find((item) => itemIdOf(item) === id)
  if (old !== undefined) return old
  throw unknownSubscription(id)
}

/** Deletes the old subscription; its secret is good until `until`, for what is on its way. */
async function retire(api: WebhooksApi, keeper: SecretKeeper, id: string, until: number): Promise<Removal> {
  const removal = await removeIfThere(api, id)
  keeper.replace(keeper.list().map((one) => (one.subscription === id ? { ...one, notAfter: until } : one)))
  return removal
}

function report(
  old: string,
  made: Made,
  { test, removal }: { readonly test: TriedOut | null; readonly removal: Removal | null },
  keeper: SecretKeeper,
  { json, url }: RotateOptions,
): void {
  const id = itemIdOf(made.item) ?? 'without an id'
  const finished = removal !== null
  const todo = removal === 'left' ? todoOf(old, [id]) : null
  const secretUntil = keeper.list().find(({ subscription }) => subscription === old)?.notAfter ?? null
  if (json === true) {
    const until = toIsoOrNull(secretUntil)
    print(JSON.stringify({ old, new: id, finished, secretUntil: until, ...(todo !== null && { todo }) }, null, 2))
    return todo === null ? undefined : warn(todo)
  }
  print(`webhook subscription ${id} takes the place of ${old}; its secret is in ${keeper.path}`)
  printTest(test)
  if (finished) {
    const until = secretUntil === null ? IN_SETTINGS : `is accepted until ${timeOf(secretUntil)}`
    print(`${old} is ${todo === null ? 'deleted' : 'still at the service'}; its secret ${until}`)
    return todo === null ? undefined : warn(todo)
  }
  const to = url === undefined ? '' : ` --url ${url}`
  print(
    `both are in force. When "patchmirror webhooks inbox --json" shows events under the new secret:\n` +
      `  patchmirror webhooks rotate ${old}${to} --finish\nor, to go back:\n  patchmirror webhooks delete ${id}`,
  )
}

const IN_SETTINGS = 'is not in the file: take it out of webhooks.secrets in four days'

async function finish(
  api: WebhooksApi,
  config: Config,
  keeper: SecretKeeper,
  id: string,
  options: RotateOptions,
): Promise<number> {
  const others = keeper.list().filter(({ subscription }) => subscription !== id)
  const own = keeper.list().filter(({ subscription }) => subscription === id)
  if (others.length === 0 && config.webhooks.secrets.length === 0)
    throw new MirrorError(
      'usage',
      `there is no other secret: create one first with "patchmirror webhooks rotate ${id}"`,
    )
  await requireSuccessor(api, config, others, id, options)
  const removed = await removeIfThere(api, id)
  const hasSecret = own.length > 0
  keeper.replace(others)
  const last = lastUse(config, own)
  if (last !== null && Date.now() - last < GRACE_MS) {
    const ago = duration((Date.now() - last) / 1000)
    warn(`the old secret was last used ${ago} ago; deliveries that are tried again with it are refused from now on`)
  }
  const staying = others.flatMap(({ subscription }) => subscription ?? [])
  const text = endOf(id, removed !== 'left', hasSecret)
  return reportRemoval(config, { id, removed, hasSecret, staying, text }, options)
}

/** Says what became of a subscription, and of its secret only where one was stored. */
function endOf(id: string, isGone: boolean, hadSecret: boolean): string {
  if (!isGone) return `${id} is still at the service${hadSecret ? '; its secret is gone from here' : ''}`
  return hadSecret ? `${id} is gone, and so is its secret` : `${id} is gone; no secret of it was stored here`
}

/** Refuses to delete a subscription that no other one replaces. Skips the check where the service returns no list. */
async function requireSuccessor(
  api: WebhooksApi,
  config: Config,
  others: readonly KeptSecret[],
  id: string,
  { url }: RotateOptions,
): Promise<void> {
  const items = await api.list().catch((error: unknown) => {
    if (isBeyondContract(error)) return []
    throw error
  })
  const old = items.find((item) => itemIdOf(item) === id)
  if (old === undefined) return
  const place = url ?? textOf(old, 'url') ?? ''
  const hasSecret = (item: Item): boolean =>
    config.webhooks.secrets.length > 0 || others.some(({ subscription }) => subscription === itemIdOf(item))
  if (items.some((item) => item !== old && textOf(item, 'url') === place && hasSecret(item))) return
  throw new MirrorError(
    'usage',
    `no other subscription sends to ${place} with a secret that is stored here: run "patchmirror webhooks rotate ${id}" ` +
      `first, with the same --url if it moves; "patchmirror webhooks delete ${id}" ends it for good`,
  )
}

/** When a delivery came last that one of the secrets had signed, unix milliseconds. */
function lastUse(config: Config, secrets: readonly KeptSecret[]): number | null {
  const labels = new Set(secrets.map(({ label }) => label))
  return withInbox(config, null, (db) => {
    const rows = createInboxReads(db).listRows(null, 1000)
    return rows.find(({ secret }) => labels.has(secret))?.receivedAt ?? null
  })
}
