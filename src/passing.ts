import { createWebhookLog } from './api/event-log.ts'
import type { ServerOptions } from './api/server.ts'
import type { Config } from './config/schema.ts'
import type { Logger } from './log.ts'
import { startRelayThread, wantsRelay } from './relay/thread.ts'
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
  /** Ends it; after the server. */
  close(): Promise<void>
}

/** Passes on what is received and published, on a thread of its own; null when nobody would get it. */
export async function startPassing({
  config,
  version,
  log,
}: PassingOptions): Promise<Passing | null> {
  if (!wantsRelay(config)) return null
  const { relay, data } = config
  const upstream = { ...config.upstream, ...NO_CREDENTIAL }
  const thread = await startRelayThread({
    config: { relay, upstream, data },
    version,
    onFault: (message) => log.warn({}, `relay: ${message}; it is tried again`),
  })
  const onServed = (served: number): void => thread.served(served)
  const db = openInboxReader(data.dir)
  if (db === null) return { shown: { onServed }, close: () => thread.close() }
  const reads = createOutboxReads(db)
  return {
    shown: { webhookLog: createWebhookLog(reads), relayTargets: reads.listTargets, onServed },
    async close() {
      await thread.close()
      db.close()
    },
  }
}

/** What targets are told nothing of. */
const NO_CREDENTIAL = { apiKey: null, token: null, clientId: null, clientSecret: null }
