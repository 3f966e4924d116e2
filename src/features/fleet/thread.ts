import { supervise } from '../../base/threads/supervisor.ts'
import { workerFile } from '../../base/threads/worker-file.ts'
import type { FleetStart, FromFleet, LiveFleetSettings, ToFleet } from './fleet.worker.ts'
import type { NodeReport } from './turn.ts'
import type { StoreCounters } from './objects/counted-store.ts'

/** The thread of a fleet as the rest of the program sees it. */
export interface FleetThread {
  /** The store was committed to: if this mirror leads, what is new is to be published. */
  committed(): void
  /** Looks at the object store now. */
  look(): void
  /** This generation is served, and the newest should have been for so many seconds. */
  served(generation: number, lagSeconds: number | null): void
  /** Takes these settings over. */
  apply(settings: LiveFleetSettings): void
  /** Gives the lease back and stops the thread. */
  close(): Promise<void>
}

/** What the thread is started with, and whom it tells. */
interface FleetThreadDeps extends FleetStart {
  readonly onReport: (report: NodeReport, traffic: StoreCounters) => void
  /** The thread could not start or ended by an error; it is replaced. */
  readonly onFault: (message: string) => void
}

/** How long the work in progress may take to end, milliseconds: everything is repeatable. */
const STOP_TIMEOUT_MS = 5_000

/** Starts the thread. Never throws: a thread that ends is reported and replaced. */
export function startFleetThread(deps: FleetThreadDeps): FleetThread {
  const { onReport, onFault, config, version, address } = deps
  const supervisor = supervise<ToFleet, FromFleet>({
    file: workerFile('fleet.worker', import.meta.url),
    data: () => ({ config, version, address }) satisfies FleetStart,
    limits: { maxYoungGenerationSizeMb: 6, maxOldGenerationSizeMb: 2000 },
    stopTimeoutMs: STOP_TIMEOUT_MS,
    onMessage(message) {
      if (message.type === 'report') onReport(message.report, message.traffic)
      else onFault(message.message)
    },
    onFailed: (message) => onFault(`${message}; it is tried again`),
  })
  return {
    committed: () => supervisor.post({ type: 'committed' }),
    look: () => supervisor.post({ type: 'look' }),
    served: (generation, lagSeconds) => supervisor.post({ type: 'served', generation, lagSeconds }),
    apply: (settings) => supervisor.post({ type: 'settings', settings }),
    close: () => supervisor.stop(),
  }
}
