import { relayUrls } from '../../config/kinds/urls.ts'
import type { Config } from '../../config/schema.ts'
import { mayReceive } from '../../config/kinds/webhooks.ts'
import { supervise } from '../../base/threads/supervisor.ts'
import { workerFile } from '../../base/threads/worker-file.ts'
import type { RelayStateChange } from './state-changes.ts'
import type { FromRelay, RelayStart, ToRelay } from './relay.worker.ts'

/** The relay's thread as the rest of the program sees it. */
export interface RelayThread {
  /** The change log is served up to here: the relay may tell of it. */
  served(log: number): void
  /** The tags were judged again: the relay may tell of it. */
  judged(): void
  /** Whether the findings of tags are served: until they are, the relay tells of none. */
  servesFindings(isServed: boolean): void
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

/** Starts the relay. Resolves when it runs, or when it has reported why it cannot start; it is tried again. Never rejects. */
export async function startRelayThread({ onFault, onTurn, ...data }: RelayThreadDeps): Promise<RelayThread> {
  let served = 0
  let isServed = false
  const supervisor = supervise<ToRelay, FromRelay>({
    file: workerFile('relay.worker', import.meta.url),
    data: () => data satisfies RelayStart,
    limits: { maxYoungGenerationSizeMb: 4, maxOldGenerationSizeMb: 256 },
    onMessage(message) {
      if (message.type === 'turn') onTurn(message.turn)
      else onFault(message.message)
    },
    onReady() {
      supervisor.post({ type: 'findings', isServed })
      supervisor.post({ type: 'served', log: served })
    },
    onFailed: onFault,
  })
  await supervisor.started
  return {
    served(log) {
      served = log
      supervisor.post({ type: 'served', log })
    },
    judged: () => supervisor.post({ type: 'judged' }),
    servesFindings(now) {
      isServed = now
      supervisor.post({ type: 'findings', isServed })
    },
    close: () => supervisor.stop(),
  }
}

/** Whether there is anything to pass on at start, or anything may be received that somebody follows. */
export function wantsRelay(config: Config): boolean {
  return relayUrls(config.relay).length > 0 || mayReceive(config)
}
