import { createWebhookLog } from './api/event-log.ts'
import type { ServerOptions } from './api/server.ts'
import type { Config } from './config/schema.ts'
import { MirrorError } from './errors.ts'
import type { Logger } from './log.ts'
import { type RelayThread, startRelayThread, wantsRelay } from './relay/thread.ts'
import { type Db, openInboxReader } from './store/database.ts'
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
  readonly shown: Pick<ServerOptions, 'webhookLog' | 'relayTargets' | 'onServed'>
  /** A delivery was stored: whoever follows the events is to be told of it. */
  arrived(): void
  /** Ends it; after the server. */
  close(): Promise<void>
}

/**
 * Passes on what is received and published, on a thread of its own. Where nobody would get anything yet, that one starts
 * with the first delivery: the secret of a first subscription comes while the daemon runs.
 */
export async function startPassing({ config, version, log }: PassingOptions): Promise<Passing> {
  const { relay, data } = config
  const upstream = { ...config.upstream, ...NO_CREDENTIAL }
  let thread: Promise<RelayThread> | null = null
  let served = 0
  const begin = async (): Promise<RelayThread> => {
    const begun = await startRelayThread({
      config: { relay, upstream, data },
      version,
      onFault: (message) => log.warn({}, `relay: ${message}; it is tried again`),
    })
    begun.served(served)
    return begun
  }
  if (wantsRelay(config)) await (thread = begin())
  const db = openIfSound(data.dir)
  if (db === null) await (await thread)?.close() // it would try again for ever; the receiver has said what is wrong
  const reads = db === null ? null : createOutboxReads(db)
  const onServed = (upTo: number): void => {
    served = upTo
    void thread?.then((begun) => begun.served(upTo))
  }
  return {
    shown: {
      onServed,
      ...(reads && { webhookLog: createWebhookLog(reads), relayTargets: reads.listTargets }),
    },
    arrived() {
      thread ??= begin()
    },
    async close() {
      await (await thread)?.close()
      db?.close()
    },
  }
}

/** A file that is damaged ends nothing: what is mirrored is served on. */
function openIfSound(dataDir: string): Db | null {
  try {
    return openInboxReader(dataDir)
  } catch (error) {
    if (error instanceof MirrorError) return null
    throw error
  }
}

/** What targets are told nothing of. */
const NO_CREDENTIAL = { apiKey: null, token: null, clientId: null, clientSecret: null }
