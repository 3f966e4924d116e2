import type { Config } from '../../config/schema.ts'
import { counted, nounOf } from '../../base/text.ts'
import { toIso } from '../../base/time.ts'
import { withInbox } from '../../cli/webhooks/inbox-rows.ts'
import { withReads } from '../../store/reads.ts'
import { createInboxReports } from '../../store/webhooks/inbox-reports.ts'
import { statusOf } from '../../upstream/http/errors.ts'
import { webhooksApi } from '../account/service-api.ts'
import { type Item, itemIdOf, itemListOf, textOf } from '../account/service-answer.ts'
import { type Finding, failure, fine, skipped, warning } from './check.ts'
import { NO_UPSTREAM } from './network/checks.ts'
import { type DoctorWorld, type Examined, NO_SECRET, type ServiceProbe, unreadSecrets, validSecrets } from './world.ts'

/** Returns what the last complete look at the catalog found of the subscriptions. */
export function subscriptions({ config: { data, catalog, upstream } }: Examined): Finding {
  if (upstream.apiRoot === null) return skipped(NO_UPSTREAM)
  if (catalog.scope === 'all') return skipped('catalog.scope is all: subscriptions are not needed')
  const run = withReads(data.dir, ({ runs }) => runs.readLatestWholeRun('catalog'))
  if (run === null) return skipped('the catalog was not synced yet')
  if (run.state !== 'complete' && run.state !== 'partial')
    return skipped(`run ${run.id} of the catalog is ${run.state}: which subscriptions are understood is not known`)
  const { subscriptionsUnderstood: understood, subscriptionsNotUnderstood: others } = run.facts
  if (typeof understood !== 'string') return fine(`run ${run.id} of the catalog understood all subscriptions`)
  const reasons = Array.isArray(others) ? others.join('; ') : ''
  return warning(
    `run ${run.id} of the catalog understood ${understood} ${nounOf(Number(understood), 'subscription')}; not: ${reasons}`,
    'See "patchmirror subscriptions list": remove what the service no longer has, or name its images in catalog.patterns.',
  )
}

/** Statuses of a subscription to which the service sends nothing. */
const DEAD = /^(disabled|inactive|paused|suspended|revoked|deleted|expired)$/i

/** Looks whether the service has the subscriptions whose secrets are here. */
export async function webhook({ world, config, probe }: Examined): Promise<Finding> {
  const unread = unreadSecrets(config)
  if (unread !== null) return skipped(unread)
  const own = validSecrets(world, config)
  const isListed = probe.upstream.has('settings')
  if (own.length === 0) return isListed ? withoutSecret(world, config, probe) : skipped(NO_SECRET)
  if (!isListed) return skipped('without a credential the subscription cannot be looked up')
  const items = await listWebhooks(world, config, probe)
  if (items === null) return skipped('this deployment cannot list webhook subscriptions')

  // "rotate" gives the secret of the subscription that it replaced an end; what has none should be at the service.
  const lasting = own.filter(({ notAfter }) => notAfter === null)
  const due = lasting.length > 0 ? lasting : own
  const gone = due.filter(
    ({ subscription }) => subscription !== null && !items.some((item) => itemIdOf(item) === subscription),
  )
  if (gone.length > 0)
    return failure(
      `the service no longer has subscription ${gone.map(({ subscription }) => subscription).join(', ')}`,
      `${REGISTER}, unless another one takes its place. Then remove its secret: "patchmirror webhooks delete ID".`,
    )
  if (items.length === 0) return failure('the service has no webhook subscription', `${REGISTER}.`)
  const ids = due.map(({ subscription }) => subscription)
  const dead = items.filter((item) => ids.includes(itemIdOf(item)) && isDead(item))
  if (dead.length > 0)
    return failure(
      `subscription ${dead.map((item) => String(itemIdOf(item))).join(', ')} is switched off at the service`,
      `Switch it on in the platform, or replace it: "patchmirror webhooks rotate ID".`,
    )
  const lost = lostSecrets(config, own, items)
  if (lost.length > 0) return warning(lost.join('; '), RENEW)
  return (
    besideOwn(own, items) ??
    fine(`the service has ${counted(items.length, 'webhook subscription')}, those of this mirror included`)
  )
}

const REGISTER = 'Register again ("patchmirror webhooks register")'
const RENEW =
  'Give it a new secret ("patchmirror webhooks rotate ID"), or remove the subscription ("patchmirror webhooks delete ID").'

/**
 * Names the subscriptions whose deliveries were taken here by a secret of their own, and for which no secret is valid now. One whose
 * subscription is not known may be theirs, where a delivery came by it since.
 */
function lostSecrets(config: Config, own: ReturnType<typeof validSecrets>, items: readonly Item[]): string[] {
  const uses = withInbox(config, [], (db) => createInboxReports(db).lastUses())
  const unnamed = own.filter(({ subscription }) => subscription === null).map(({ label }) => label)
  const lastUnnamed = Math.max(...uses.filter(({ label }) => unnamed.includes(label)).map(({ at }) => at))
  const known = own.flatMap(({ label, subscription }) => [label, subscription])
  const ids = items.map(itemIdOf).filter((id) => id !== null && !known.includes(id))
  const lost = uses.filter(({ label, at }) => ids.includes(label) && at > lastUnnamed)
  return lost.map(
    ({ label, at }) =>
      `no secret of subscription ${label} is valid here, so its deliveries are refused; one was taken ${toIso(at)}`,
  )
}

/**
 * Names subscriptions beside one of this mirror that send the same events to the same URL: the answer to a registration was lost,
 * or a rotation was ended before its time. Whether its secret is here is not known where one is stored without its subscription.
 */
function besideOwn(own: ReturnType<typeof validSecrets>, items: readonly Item[]): Finding | null {
  const known = own.map(({ subscription }) => subscription)
  const sent = Map.groupBy(items, (item) =>
    JSON.stringify([textOf(item, 'url'), itemListOf(item, 'eventtypes')?.sort()]),
  )
  for (const same of sent.values()) {
    const ids = same.map((item) => String(itemIdOf(item)))
    const others = ids.filter((id) => !known.includes(id))
    if (ids.length < 2 || others.length === ids.length || textOf(same[0] ?? {}, 'url') === null) continue
    const found = `subscriptions ${ids.join(', ')} send the same events to the same URL`
    if (others.length > 0 && !known.includes(null))
      return warning(
        `${found}; no secret of ${others.join(', ')} is stored here, so these deliveries are refused`,
        `Remove it: "patchmirror webhooks delete ${others[0] ?? ''}".`,
      )
    return warning(`${found}, so each event comes more than once`, 'Keep one: "patchmirror webhooks delete ID".')
  }
  return null
}

/** Secrets may be lost: subscriptions tell it from a mirror that never had any, where it received deliveries as well. */
async function withoutSecret(world: DoctorWorld, config: Config, probe: ServiceProbe): Promise<Finding> {
  const last = lastDelivery(config, world.now())
  const items = last === null ? null : await listWebhooks(world, config, probe)
  if (last === null || items === null || items.length === 0) return skipped(NO_SECRET)
  const ids = items.map((item) => String(itemIdOf(item))).join(', ')
  return warning(
    `no webhook secret is valid here, so deliveries are refused; one was taken ${toIso(last)}, and the service has ${counted(items.length, 'webhook subscription')} (${ids})`,
    'If one of them is of this mirror, give it a new secret: "patchmirror webhooks rotate ID".',
  )
}

/** When the newest delivery that is stored was received, Unix milliseconds; null: none is. */
function lastDelivery(config: Config, now: number): number | null {
  return withInbox(config, null, (db) => createInboxReports(db).announcedSince(now).lastAt)
}

function isDead(item: Item): boolean {
  const { active, enabled, disabled, status, state } = item
  if (active === false || enabled === false || disabled === true) return true
  return [status, state].some((text) => typeof text === 'string' && DEAD.test(text))
}

/** Lists the subscriptions; null where the deployment has no such list (the contract does not promise it). */
async function listWebhooks(
  { timeoutMs }: DoctorWorld,
  { upstream: { maxRecordBytes, vendor } }: Config,
  probe: ServiceProbe,
): Promise<Item[] | null> {
  const session = probe.upstream.client('settings').open(AbortSignal.timeout(timeoutMs), 'ops')
  try {
    return await webhooksApi(session, maxRecordBytes, vendor).list()
  } catch (error) {
    if ([404, 405, 501].includes(statusOf(error) ?? 0)) return null
    throw error
  }
}
