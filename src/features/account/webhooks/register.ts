import type { Config } from '../../../config/schema.ts'
import { endpointsOf } from '../../../config/kinds/webhooks.ts'
import { imageCreatedType } from '../../../base/domain/event-types.ts'
import { MirrorError, messageOf } from '../../../base/errors.ts'
import { type Item, type Made, itemIdOf, itemListOf, textOf } from '../service-answer.ts'
import type { NewWebhook, WebhooksApi } from '../service-api.ts'
import { isUnsent, statusOf } from '../../../upstream/http/errors.ts'
import { LIST, anyMirroredTag, testDelivery, withWebhooks } from './subscriptions.ts'
import { type StoredSecretResult, keepSecret, withSecretKeeper } from './secrets.ts'
import { type SecretOptions, writeSecret } from '../secret-output.ts'
import { type AskWithin, type ServiceCommandOptions, printItem } from '../session.ts'
import { isServed, print, warn } from '../../../cli/context.ts'
import { cut, visible } from '../../../cli/output.ts'
import { daemonUrl, withTakenPort } from '../../../cli/daemon-client.ts'

/** Options of `patchmirror webhooks register`. */
interface RegisterOptions extends SecretOptions {
  url?: string
  description?: string
  event?: string[]
  testTag?: string
}

/**
 * `patchmirror webhooks register --url URL`: writes the secret into the file that the receiver reads, or with `--out` into
 * another file for another receiver. Sends a test when a tag is known. Exits with 1 when the secret or a requested test fails.
 */
export function registerWebhookCommand(given: string | undefined, options: RegisterOptions): Promise<number> {
  const url = endpointUrl(given ?? options.url)
  if (options.out !== undefined && options.testTag !== undefined)
    throw new MirrorError('usage', '--out is for a receiver elsewhere: test it when it has the secret')
  return withWebhooks(options, async (api, config, within) => {
    if (options.out === undefined) refuseHostAlone(url, config)
    const webhook = {
      url,
      description: options.description ?? 'patchmirror',
      event_types: options.event ?? [imageCreatedType(config.upstream.vendor)],
    }
    let own = null as string | null // set by the function, which the compiler does not follow
    const register = async (): Promise<Made> => {
      const made = await api.register(webhook).catch((error: unknown) => {
        throw withNextStep(error)
      })
      own = itemIdOf(made.item)
      return made
    }
    const code =
      options.out === undefined
        ? await registerHere(api, config, register, options)
        : await writeSecret(register, options)
    if (own !== null) await warnOfSame(within, url, own)
    return code
  })
}

/** Has the secret of a new subscription stored for the receiver here, and a test sent. Returns the exit code. */
function registerHere(
  api: WebhooksApi,
  config: Config,
  register: () => Promise<Made>,
  options: RegisterOptions,
): Promise<number> {
  return withSecretKeeper(config, async (keeper) => {
    const made = await register()
    const stored = keepSecret(keeper, made)
    const test = stored.problem === null ? await tryOut(api, made, config, options.testTag) : null
    report(made, stored, test, keeper.path, options)
    if (hasFailed(test)) warn(afterFailedTest(config, itemIdOf(made.item)))
    const mayLack = options.testTag === undefined && !hasFailed(test)
    return stored.problem === null && (test?.delivered === true || mayLack) ? 0 : 1
  })
}

/** How long the list of subscriptions is waited for, milliseconds, and how many of the same URL are named. */
const LIST_MS = 5_000
const NAMED = 5

/**
 * Warns where the service has other subscriptions of this URL, as far as it tells soon: every event would come once for each.
 * Asked last: a service may have requests wait for minutes after this one, which the contract does not promise.
 */
async function warnOfSame(within: AskWithin<WebhooksApi>, url: string, own: string): Promise<void> {
  const items = await within(LIST_MS, (api) => api.list()).catch(() => [])
  const others = items.filter((item) => hrefOf(textOf(item, 'url')) === hrefOf(url) && itemIdOf(item) !== own)
  if (others.length === 0) return
  const ids = others.flatMap((item) => itemIdOf(item) ?? []).slice(0, NAMED)
  const named = ids.map((id) => cut(visible(id), 100)).join(', ')
  const more = others.length > ids.length ? ` and ${others.length - ids.length} more` : ''
  const all = others.length === 1 ? 'another subscription' : `${others.length} other subscriptions`
  const which = ids.length === 0 ? '' : ` (${named}${more})`
  warn(
    `the service has ${all} of this URL${which}, and sends each event for each of them: remove one with "patchmirror webhooks delete ID"`,
  )
}

function hrefOf(url: string | null): string | null {
  return url === null ? null : (URL.parse(url)?.href ?? url)
}

/** Whether a test was sent and is over, undelivered; one that the service still tries is neither. */
function hasFailed(test: TriedOut | null): boolean {
  return test !== null && !test.delivered && !test.pending
}

/** The address of an endpoint. Throws `usage`. */
function endpointUrl(text: string | undefined): string {
  if (text === undefined)
    throw new MirrorError('usage', 'the URL that receives the events is missing: give --url https://…/-/webhooks')
  if (/^https?:\/\/[^/]/i.test(text) && URL.canParse(text)) return text
  throw new MirrorError('usage', `${text} is not the URL of an endpoint, such as https://mirror.example.com/-/webhooks`)
}

/** Throws `usage` for a host alone, since no path of this mirror is reached by it. With a slash at its end it is meant so. */
export function refuseHostAlone(url: string, { webhooks }: Config): void {
  const [first] = endpointsOf(webhooks)
  if (first === undefined || !/^https?:\/\/[^/?#]+$/i.test(url)) return
  throw new MirrorError(
    'usage',
    `${url} has no path, and this mirror takes deliveries at ${first.path}: give ${url}${first.path}, or ${url}/ where a proxy leads there`,
  )
}

/** How a test came out. */
export interface TriedOut {
  readonly delivered: boolean
  /** The service is still trying. */
  readonly pending: boolean
  readonly result: Item | null
  /** Why it was not delivered; null when it was. */
  readonly problem: string | null
}

/** Requests a test event for the given tag, else for a mirrored one; null when there is none. Never throws. */
export async function tryOut(
  api: WebhooksApi,
  { item }: Made,
  config: Config,
  given: string | undefined,
): Promise<TriedOut | null> {
  const tagId = given ?? anyMirroredTag(config)
  const id = itemIdOf(item)
  if (tagId === null || id === null) return null
  try {
    const { item: result, state } = await testDelivery(api, id, tagId)
    const delivered = state === 'delivered'
    const reason = textOf(result, 'errorreason')
    const pending = state === 'pending'
    return { delivered, pending, result, problem: delivered ? null : reason || UNKNOWN[state ?? 'unknown'] }
  } catch (error) {
    return { delivered: false, pending: false, result: null, problem: messageOf(error) }
  }
}

const UNKNOWN = {
  pending: 'the service is still trying',
  failed: 'the service gives no reason',
  unknown: 'the answer has no status (delivered, pending or failed), so what became of it is not known',
}

function report(
  made: Made,
  stored: StoredSecretResult,
  test: TriedOut | null,
  path: string,
  options: ServiceCommandOptions,
): void {
  if (stored.problem !== null && stored.secret !== null) lastResort(stored.secret, options)
  const { label } = stored
  const about = stored.problem === null ? { secretFile: path, secretLabel: label } : {}
  const tested = test === null ? {} : { test: test.result ?? { status: 'failed', error_reason: test.problem } }
  const shown = { ...made.item, ...about, ...(options.json === true ? tested : {}) }
  printItem(shown, options, made.secret)
  if (stored.problem !== null)
    warn(`the secret is not in ${path}: ${stored.problem}; ${afterLostSecret(itemIdOf(made.item))}`)
  else notice(`the secret is in ${path}; a running mirror accepts it at once`)
  printTest(test)
}

/** Prints the result of a test. */
export function printTest(test: TriedOut | null): void {
  if (test === null) notice('no test was sent: no tag is known yet (--test-tag ID; /v1/tags/ lists them)')
  else if (test.delivered) notice('a test event was delivered; see "patchmirror webhooks inbox"')
  else {
    const next = 'see "patchmirror webhooks check --help" and docs/troubleshooting.md'
    warn(`the test event was not delivered: ${test.problem ?? ''}; ${next}`)
  }
}

/** Prints the secret before anything that may fail: the service does not return it again. */
function lastResort(secret: string, { json }: ServiceCommandOptions): void {
  if (json === true) process.stderr.write(`secret  ${secret}\n`)
  else print(`secret  ${secret}`)
}

/** Prints a notice on standard error. */
function notice(text: string): void {
  process.stderr.write(`${text}\n`)
}

/** Returns what a new subscription copies from the one that it replaces. Throws `usage` where that is unknown. */
export function copyOf(old: Item, url: string | undefined, type: string): NewWebhook {
  const known = url ?? textOf(old, 'url')
  if (known === null)
    throw new MirrorError('usage', 'the service does not return the URL of the subscription: give --url and try again')
  return {
    url: endpointUrl(known),
    description: textOf(old, 'description') ?? 'patchmirror',
    event_types: itemListOf(old, 'eventtypes') ?? [type],
  }
}

/** Adds to the error of a registration whether the service may have a subscription, and what to do next. */
function withNextStep(error: unknown): unknown {
  if (!(error instanceof MirrorError)) return error
  const hint = hintOf(error)
  return hint === null ? error : new MirrorError(error.code, `${error.message}. ${hint}`, { cause: error })
}

const NOTHING_MADE = 'No subscription was made'

function hintOf(error: MirrorError): string | null {
  const status = statusOf(error) ?? 0
  // Both name the setting of the credential themselves.
  if (error.code === 'upstream_auth' || status === 401 || status === 403) return null
  if ([404, 405, 501].includes(status))
    return (
      `${NOTHING_MADE}: the service has no webhook settings at this address. Check upstream.apiRoot; where subscriptions are made ` +
      'in the platform, make one there and give its secret as webhooks.secrets'
    )
  if (isUnsent(error))
    return `${NOTHING_MADE}, for the service was not reached or takes no more requests now: try again; "patchmirror doctor" checks the way to it`
  if (status >= 400 && status < 500)
    return `${NOTHING_MADE}: check the URL, which the service must be able to reach, and the types of --event`
  if (!error.code.startsWith('upstream_')) return null
  return (
    `Whether the subscription was made is not known: look for it with "patchmirror ${LIST}". One whose secret is not stored here ` +
    'is of no use: remove it ("patchmirror webhooks delete ID"), then register again'
  )
}

/** Returns what to do after a test that was not delivered: where this mirror takes deliveries, and how to send the next test. */
function afterFailedTest(config: Config, id: string | null): string {
  const { data } = config
  const again = `"patchmirror webhooks test ${id ?? 'ID'}"`
  const kept = `the subscription and its secret stay, so do not register again: "patchmirror webhooks rotate ${id ?? 'ID'} --url URL" replaces a wrong URL`
  return isServed(data.dir)
    ? `a daemon serves ${data.dir} and takes webhooks ${placeOf(config)}: check that the URL leads there from the service, then ${again}; ${kept}`
    : `no daemon serves ${data.dir}: start it ("patchmirror serve"), then ${again}; ${kept}`
}

/** Where deliveries arrive: on a port of their own, or where the mirror listens, with the address under which it is known. */
function placeOf(config: Config): string {
  const { port } = config.webhooks
  const path = endpointsOf(config.webhooks)[0]?.path ?? ''
  if (port !== null) return `on port ${port} at ${path}`
  const { server } = withTakenPort(config)
  const own = server.socket === null ? `on port ${server.port}` : `on ${daemonUrl(server)}`
  return server.publicUrl === null ? `${own} at ${path}` : `${own}, which is ${server.publicUrl}${path}`
}

/** Returns what to do about a subscription whose secret is not stored. */
function afterLostSecret(id: string | null): string {
  const remove = `"patchmirror webhooks delete ${id ?? 'ID'}"`
  return `deliveries are refused without it: give the secret as webhooks.secrets, or remove the subscription (${remove}) and register again`
}
