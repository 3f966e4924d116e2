import type { Logger } from '../base/log.ts'
import type { Config } from '../config/schema.ts'
import type { MirrorServer } from '../server/server.ts'
import type { Lock } from '../store/database/lock.ts'
import type { PinnedReads } from '../store/reads.ts'
import type { noteProgress } from '../sync/progress.ts'
import type { SyncThread } from '../sync/thread.ts'
import type { InboxThread } from '../webhooks/inbox/thread.ts'
import type { Webhooks } from '../webhooks/webhooks.ts'
import type { Feature, Gate } from './feature.ts'
import type { InboxView } from './inbox-view.ts'
import type { Counters } from './metrics/metrics.ts'
import type { Jobs, RunRetries } from './schedule.ts'
import type { Signals } from './signals.ts'
import type { RunningFeatures } from './start-features.ts'
import type { StorageWatch } from './storage.ts'
import type { RunningScrub } from './verification/scrub.ts'

/** What all parts of a daemon are made from. */
export interface Wiring {
  readonly config: Config
  readonly features: readonly Feature[]
  readonly version: string
  readonly log: Logger
  readonly now: () => number
  readonly offline: boolean
  /** How far the runs are. */
  readonly progress: ReturnType<typeof noteProgress>
}

/** What runs by now. */
export interface Running {
  readonly signals: Signals
  /** End what needs no order of its own. */
  readonly stops: (() => void)[]
  lock?: Lock
  metrics?: Counters
  storage?: StorageWatch
  thread?: SyncThread
  retries?: RunRetries
  inbox?: InboxThread
  gate?: Gate | null
  reads?: PinnedReads
  view?: InboxView
  webhooks?: Webhooks
  features?: RunningFeatures
  scrub?: RunningScrub
  server?: MirrorServer
  jobs?: Jobs
  /** Writes where the daemon listens. */
  announce?: () => void
}

/** Stops what runs, in this order: what writes first, what serves after it. */
export async function stop(on: Running): Promise<void> {
  on.webhooks?.refuse()
  on.stops.forEach((end) => end())
  on.retries?.stop()
  on.jobs?.stop()
  await Promise.all([on.gate?.close(), on.scrub?.close()])
  await on.thread?.stop()
  await on.features?.close()
  await on.server?.close()
  on.view?.close()
  await on.webhooks?.close()
  await on.inbox?.close()
  on.reads?.close()
  on.lock?.release()
}
