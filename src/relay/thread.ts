import { existsSync } from 'node:fs'
import { Worker } from 'node:worker_threads'
import { relayUrls } from '../config/kinds/urls.ts'
import type { Config } from '../config/schema.ts'
import { secretFilePath } from '../config/kinds/webhooks.ts'
import { messageOf } from '../core/errors.ts'
import type { RelayStateChange } from './relay.ts'
import type { FromRelay, RelayStart, ToRelay } from './relay.worker.ts'

/** The relay's thread as the rest of the program sees it. */
export interface RelayThread {
  /** The change log is served up to here: the relay may tell of it. */
  served(log: number): void
  /** Ends it. What is under way is sent again by the next start. */
  close(): Promise<void>
}

/** What the thread is started with, and whom it tells. */
interface RelayThreadDeps extends RelayStart {
  /** A fault: nothing is lost by it, and it is tried again. */
  readonly onFault: (message: string) => void
  /** A target begins to fail, is disabled, or is back. */
  readonly onTurn: (turn: RelayStateChange) => void
}

/** A thread that died is replaced after this long. */
const RESTART_MS = 5_000

/** The worker file beside this one: `.ts` when run from source, `.js` when built. */
function workerUrl(): URL {
  return new URL(
    import.meta.url.endsWith('.ts') ? './relay.worker.ts' : './relay.worker.js',
    import.meta.url,
  )
}

/** Starts the relay. Resolves when it runs, or has said why it cannot; that is tried again. Never rejects. */
export async function startRelayThread({
  onFault,
  onTurn,
  ...start
}: RelayThreadDeps): Promise<RelayThread> {
  let worker: Worker | null = null
  let restart: NodeJS.Timeout | null = null
  let stopping = false
  let served = 0
  const send = (message: ToRelay): void => worker?.postMessage(message)
  const spawn = (onFirst: () => void): void => {
    const limits = { maxYoungGenerationSizeMb: 4, maxOldGenerationSizeMb: 256 }
    const started = new Worker(workerUrl(), { workerData: start, resourceLimits: limits })
    worker = started
    started.on('message', (message: FromRelay) => {
      if (message.type === 'ready') send({ served })
      else if (message.type === 'turn') onTurn(message.turn)
      else onFault(message.message)
      onFirst()
    })
    started.on('error', (error) => onFault(messageOf(error)))
    started.on('exit', () => {
      worker = null
      onFirst()
      if (!stopping) restart = setTimeout(spawn, RESTART_MS, () => undefined).unref()
    })
  }
  await new Promise<void>((resolve) => spawn(resolve))
  return {
    served(log) {
      served = log
      send({ served })
    },
    async close() {
      stopping = true
      if (restart !== null) clearTimeout(restart)
      const last = worker
      if (last === null) return
      const exited = new Promise((resolve) => last.once('exit', resolve))
      send({ stop: true })
      await exited
    },
  }
}

/** Whether there is anything to pass on at start, or anything may be received that somebody follows. */
export function wantsRelay(config: Config): boolean {
  const { relay, webhooks } = config
  const given = relayUrls(relay).length + webhooks.secrets.length
  return given > 0 || existsSync(secretFilePath(config))
}
