import { createWebhookLog } from './api/event-log.ts'
import type { ServerOptions } from './api/server.ts'
import type { Config } from './config/schema.ts'
import { messageOf } from './errors.ts'
import type { Logger } from './log.ts'
import { type RelayThread, startRelayThread, wantsRelay } from './relay/thread.ts'
import { openInboxReader } from './store/database.ts'
import { createOutboxReads } from './store/outbox.ts'

/** What the relay is started with. */
export interface PassingOptions {
  readonly config: Config
  readonly version: string
  readonly log: Pick<Logger, 'warn'>
}

/** The relay, and what the server shows of it. */
export interface Passing {
  /** For the server's options. */
  shown: Pick<ServerOptions, 'webhookLog' | 'relayTargets' | 'onServed'>
  /** The first delivery came, as after `webhooks register` on a running daemon: from now on there is something to pass on. */
  arrived(): void
  /** Ends it; after the server. */
  close(): Promise<void>
}

/**
 * Passes on what is received and published, on a thread of its own, which is started when there is anybody to tell or
 * anything to tell of.
 */
export async function startPassing({ config, version, log }: PassingOptions): Promise<Passing> {
  const { relay, data } = config
  let served = 0
  let thread: Promise<RelayThread> | null = null
  const begin = async (): Promise<void> => {
    if (thread !== null) return
    const upstream = { ...config.upstream, ...NO_CREDENTIAL }
    thread = startRelayThread({
      config: { relay, upstream, data },
      version,
      onFault: (message) => log.warn({}, `relay: ${message}; it is tried again`),
    })
    const started = await thread
    started.served(served)
  }
  if (wantsRelay(config)) await begin()
  const db = openLog(data.dir, log)
  const onServed = (log: number): void => {
    served = log
    void thread?.then((started) => started.served(log))
  }
  const close = async (): Promise<void> => {
    await (await thread)?.close()
    db?.close()
  }
  const arrived = (): void => void begin()
  if (db === null) return { shown: { onServed }, arrived, close }
  const reads = createOutboxReads(db)
  const shown = { webhookLog: createWebhookLog(reads), relayTargets: reads.listTargets, onServed }
  return { shown, arrived, close }
}

/** The log of what was passed on; null when it cannot be read, which the inbox has told already. */
function openLog(dataDir: string, log: PassingOptions['log']): ReturnType<typeof openInboxReader> {
  try {
    return openInboxReader(dataDir)
  } catch (error) {
    log.warn({}, `relay: ${messageOf(error)}`)
    return null
  }
}

/** What targets are told nothing of. */
const NO_CREDENTIAL = { apiKey: null, token: null, clientId: null, clientSecret: null }
