import type { IncomingMessage, ServerResponse } from 'node:http'
import { DAY_MS, HOUR_MS } from '../base/time.ts'
import type { Config } from '../config/schema.ts'
import { type Endpoint, endpointsOf, mayReceive, secretFilePath } from '../config/kinds/webhooks.ts'
import type { Account } from '../base/connections/account.ts'
import type { ConnectionOptions } from '../base/connections/limit.ts'
import { messageOf } from '../base/errors.ts'
import type { Logger } from '../base/log.ts'
import { MAX_DELIVERY_BYTES } from './receive/body-reader.ts'
import { createTypeFilter } from './receive/event.ts'
import { TOLERANCE_SECONDS } from './receive/headers.ts'
import { type Listener, startListener, tryListener } from './receive/listener.ts'
import { type DeliveryFollower, type ReceiverOptions, createReceiver } from './receive/receiver.ts'
import { maySync } from '../base/domain/sources.ts'
import type { Status } from '../base/reports/status.ts'
import type { WebhooksReport } from '../base/reports/webhooks.ts'
import { createReport } from './receive/report.ts'
import { createSecrets } from './receive/secrets.ts'
import type { InboxFault } from './inbox/fault.ts'
import { isInboxEmpty } from './inbox/empty.ts'
import { type InboxThread, startInboxThread } from './inbox/thread.ts'
import { createVerifier } from './receive/signature.ts'
import type { PinnedReads } from '../store/reads.ts'
import { timeOfAges } from '../store/runs/age-limit.ts'
import type { RefreshRunner } from './refresh/batch.ts'
import { startRefresher } from './refresh/refresher.ts'

/** What the webhooks are made from. */
interface WebhooksOptions {
  readonly config: Config
  readonly log: Logger
  /** Unix milliseconds. */
  readonly now: () => number
  readonly counters: WebhookCounters
  readonly inbox: InboxThread
  /** What is wrong with webhooks.db. */
  readonly fault: InboxFault
  /** What bodies and unsent answers of the own listener count in. */
  readonly account: Account
  /** Runs the refreshes. */
  readonly sync: RefreshRunner
  readonly reads: PinnedReads
  /** Why deliveries are not taken now; null: they are. */
  readonly refusal: () => string | null
  /** Is notified of stored deliveries, as the refresher is. */
  readonly follower: DeliveryFollower
  /** Adds a listener that is called when webhooks.db was written to, by any process. */
  readonly onWritten: (listener: () => void) => void
}

/** Counts outcomes of deliveries, and connections of the own listener that were closed or refused for want of places. */
type WebhookCounters = ReceiverOptions['counters'][number] & {
  readonly countClosed: ConnectionOptions['onClosed']
}

/** Receiving deliveries and refreshing for them, running. */
export interface Webhooks {
  /** For the main listener: answers a request at an endpoint; false for any other, and with a listener of its own. */
  readonly handle: (request: IncomingMessage, response: ServerResponse) => boolean
  /** The paths that `handle` answers. */
  readonly paths: readonly string[]
  readonly report: () => Promise<WebhooksReport>
  /** What is wrong with the file of secrets, as far as it was read before. */
  readonly secretFaults: () => NonNullable<Status['secretFaults']>
  /** Opens the separate listener, if the settings name one; logs the endpoints. */
  listen(mainUrl: string): Promise<void>
  /** Reads the secret file and the certificate again now, even if unchanged; logs what changed. */
  reload(): void
  /** From now on every delivery is a 503, so that its sender tries again, and no refresh begins. */
  refuse(): void
  /** After the servers; the inbox stays open. */
  close(): Promise<void>
}

/** A delivery asks for a refresh: none is taken where there can be none. */
const SYNCS_NOTHING = 'this mirror syncs nothing, so it takes no events'

const PRUNE_MS = HOUR_MS
/** How long a delivery is remembered, so that a repeat is known: senders try for days, and a month outlasts them all. */
const KEEP_MS = 30 * DAY_MS
const GRACE_MS = 10_000

/** Starts the inbox thread with the settings: where nothing can be received and nothing was, with the first delivery. */
export function startInbox({ config, fault }: Pick<WebhooksOptions, 'config' | 'fault'>) {
  return startInboxThread({
    dataDir: config.data.dir,
    keepMs: KEEP_MS,
    isEmpty: !mayReceive(config) && isInboxEmpty(config.data.dir),
    onFailed: fault.note,
    onRevived: fault.end,
  })
}

/** Tries what deliveries need, before a start changes anything. Throws `config` as `startWebhooks` and `listen` do. */
export async function tryWebhooks(config: Config, now: () => number): Promise<void> {
  const { secrets, dialect, port } = config.webhooks
  createSecrets({ settings: () => secrets, file: secretFilePath(config), dialect, now, log: null })
  if (port !== null) await tryListener(listenerOptions(config, port))
}

/**
 * Starts the way of a delivery: the receiver verifies, stores and announces it; the refresher coalesces what was
 * announced, refreshes, judges what readers see then, and settles it. Throws `config` for secrets that cannot be used.
 */
export function startWebhooks(options: WebhooksOptions): Webhooks {
  const { config, log, now, inbox, counters, reads } = options
  const settings = config.webhooks
  const { dialect, allowedOrigins } = settings
  const endpoints = endpointsOf(settings)
  const secrets = createSecrets({
    settings: () => settings.secrets,
    file: secretFilePath(config),
    dialect,
    now,
    log,
  })
  const isOn = (): boolean => secrets.active().length > 0
  const refresher = startRefresher({ ...options, isOn })
  const report = createReport({ endpoints, secrets, inbox, now, fault: options.fault })
  const receiver = createReceiver({
    endpoints,
    inbox,
    allowedOrigins,
    maxBytes: MAX_DELIVERY_BYTES,
    now,
    log,
    verify: createVerifier({ secrets: secrets.active, dialect, toleranceSeconds: TOLERANCE_SECONDS, now }),
    isSetUp: isOn,
    refusal: () => options.refusal() ?? (maySync(config) ? null : SYNCS_NOTHING),
    isWanted: createTypeFilter(settings.types, config.upstream.vendor),
    counters: [report, counters],
    followers: [refresher, options.follower],
  })
  const pruning = startPruning(inbox, log, () => timeOfAges(reads.live, now()))
  let listener: Listener | null = null
  return {
    handle: settings.port === null ? receiver.handle : () => false,
    paths: settings.port === null ? endpoints.map(({ path }) => path) : [],
    async report() {
      const [status, refresh] = await Promise.all([report.make(), refresher.report()])
      return { ...status, refresh }
    },
    secretFaults: () => [secrets.fault() ?? []].flat().map((fault) => ({ key: settings.secretFile, ...fault })),
    async listen(mainUrl) {
      if (settings.port !== null) listener = await startOwnListener(options, settings.port, receiver.handle)
      // server.publicUrl leads to the main listener.
      const url = listener?.url ?? config.server.publicUrl ?? mainUrl
      announce(options, url, endpoints, secrets.active().length)
    },
    reload() {
      secrets.active()
      listener?.renew()
    },
    refuse() {
      receiver.close()
      refresher.stop()
    },
    async close() {
      receiver.close()
      refresher.stop()
      clearInterval(pruning)
      await listener?.close(GRACE_MS)
    },
  }
}

function startOwnListener(
  { config, log, counters, account }: WebhooksOptions,
  port: number,
  handle: Parameters<typeof only>[0],
): Promise<Listener> {
  const handler = only(handle)
  return startListener({ ...listenerOptions(config, port), log, handler, onClosed: counters.countClosed, account })
}

function listenerOptions({ webhooks, server }: Config, port: number) {
  const { host, certFile, keyFile } = webhooks
  const tls = certFile === null || keyFile === null ? null : { certFile, keyFile }
  const { maxConnections, maxConnectionsPerAddress } = server
  return { host: host ?? server.host, port, tls, maxConnections, maxConnectionsPerAddress }
}

/** A listener for deliveries alone: everything else is not there. */
function only(handle: Webhooks['handle']) {
  return (request: IncomingMessage, response: ServerResponse): void => {
    if (handle(request, response)) return
    const body = '{"error":"not_found","message":"only webhooks are received here"}'
    response.writeHead(404, { 'Content-Type': 'application/json', 'Cache-Control': 'no-store' })
    response.end(request.method === 'HEAD' ? '' : body)
  }
}

function announce(
  { log, config }: Pick<WebhooksOptions, 'log' | 'config'>,
  url: string,
  endpoints: readonly Endpoint[],
  secrets: number,
): void {
  const at = endpoints.map(({ path }) => url + path).join(', ')
  if (secrets > 0) return log.info({ secrets }, `webhooks are received at ${at}`)
  if (!maySync(config))
    return log.debug(
      {},
      `webhooks: this mirror syncs nothing, so it needs no events; deliveries to ${at} are answered 503`,
    )
  log.info(
    {},
    `webhooks: no secret is configured or valid now, so deliveries to ${at} are answered 503. ` +
      'Set webhooks.secrets, or run "patchmirror webhooks register".',
  )
}

/** Forgets old rows now and every hour, some hundred at a time; `time`: by which they are old, Unix milliseconds. */
function startPruning(inbox: InboxThread, log: Logger, time: () => number): NodeJS.Timeout {
  const prune = async (): Promise<void> => {
    try {
      while ((await inbox.prune(time())) > 0);
    } catch (error) {
      log.debug({}, `old webhooks are not forgotten yet: ${messageOf(error)}`)
    }
  }
  void prune()
  return setInterval(() => void prune(), PRUNE_MS).unref()
}
