import type { Config } from '../config/schema.ts'
import type { EventTarget } from '../domain/image-reference.ts'
import type { SourceName } from '../domain/sources.ts'
import { activeSources } from '../domain/sources.ts'
import type { RunKind, RunTrigger } from '../store/runs/runs.ts'
import { supervise } from '../threads/supervisor.ts'
import { workerFile } from '../threads/worker-file.ts'
import type { Progress } from './context.ts'
import { type RefreshResult, createRefresh } from './refresh.ts'
import { type RequestOutcome, type Requests, createRequests } from './run-queue.ts'
import type { RunReport, RunRequest } from './runner.ts'
import type { FromWorker, ToWorker, WorkerStart } from './sync.worker.ts'

/** The sync thread as the rest of the program sees it. */
export interface SyncThread {
  /**
   * Asks for a run. A source runs once at a time: while it runs, further requests coalesce into one more run
   * after it, of the more thorough kind.
   */
  requestSync(source: SourceName, kind: RunKind, trigger: RunTrigger): void
  /**
   * Looks at once for what events name (none: at whatever moved): the catalog's lists that an event can touch, if there is
   * a credential, and the public feeds. Each source's run begins after the call; one that waits already serves both, in the
   * more thorough way. Never rejects; see `RefreshResult` for what counts as success.
   */
  refresh(targets: readonly EventTarget[]): Promise<RefreshResult>
  checkpoint(): void
  /** Makes the derived archive again if it is gone; nothing while a run is under way, which looks itself. */
  rebuildArchive(): void
  /** Ends the run in flight (nothing of it is committed) and the thread. */
  stop(): Promise<void>
}

/** What the thread is started with, and whom it tells. */
export interface SyncThreadDeps {
  config: Config
  version: string
  /** Whatever the thread tries to connect to is refused. */
  offline?: boolean
  onEnded(report: RunReport): void
  /** A run that could not even start, or the thread itself failing; `request` null then. */
  onFailed(request: RunRequest | null, message: string): void
  onProgress(progress: Progress): void
  /** What an operator should know and no run says. */
  onWarning?(message: string): void
  /** The log is in the database file: readers should take their moment anew. */
  onCheckpoint(): void
}

const STOPPED = 'the program is being stopped'

/** Starts the sync thread. Rejects when it cannot open the data folder; a thread that ends later is reported and replaced. */
export async function startSyncThread(deps: SyncThreadDeps): Promise<SyncThread> {
  const { config, version, offline = false } = deps
  let stopping = false
  const requests = createRequests(
    (request) => supervisor.post({ type: 'run', request }),
    () => supervisor.isReady && !stopping,
  )
  const supervisor = supervise<ToWorker, FromWorker>({
    file: workerFile('sync.worker', import.meta.url),
    data: { config, version, offline } satisfies WorkerStart,
    // A sync makes short-lived garbage by the gigabyte; a small nursery keeps the peak of memory low at no cost in time.
    // Below 2 GB the collector lets what is not so short-lived grow twofold before it looks, above that fourfold.
    limits: { maxYoungGenerationSizeMb: 6, maxOldGenerationSizeMb: 2000 },
    mustStart: true,
    onMessage: (message) => forward(deps, requests, message),
    onReady: () => requests.startWaiting(),
    onFailed(message, wasReady) {
      if (!wasReady) requests.lost(`the sync thread cannot start: ${message}`)
      deps.onFailed(null, message)
    },
    onEnded: (failure) =>
      requests.lost(
        stopping ? STOPPED : `the sync thread died: ${failure ?? 'it does not say why'}`,
      ),
  })
  const ask = (request: RunRequest): Promise<RequestOutcome> =>
    stopping
      ? Promise.resolve({ failure: STOPPED })
      : new Promise((resolve) => requests.ask(request, resolve))
  await supervisor.started

  return {
    requestSync: (source, kind, trigger) => requests.ask({ source, kind, trigger }),
    refresh: createRefresh(activeSources(config), ask),
    checkpoint: () => supervisor.post({ type: 'checkpoint' }),
    rebuildArchive: () => supervisor.post({ type: 'rebuild' }),
    async stop() {
      stopping = true
      await supervisor.stop()
      requests.lost(STOPPED)
    },
  }
}

function forward(deps: SyncThreadDeps, requests: Requests, message: FromWorker): void {
  if (message.type === 'progress') deps.onProgress(message.progress)
  if (message.type === 'warning') deps.onWarning?.(message.message)
  if (message.type === 'ended') deps.onEnded(message.report)
  if (message.type === 'checkpointed') deps.onCheckpoint()
  if (message.type === 'failed') deps.onFailed(message.request, message.message)
  if (message.type === 'ended') requests.ended(message.request.source, { report: message.report })
  if (message.type === 'failed' && message.request !== null)
    requests.ended(message.request.source, { failure: message.message })
}
