import { Worker } from 'node:worker_threads'
import type { Config } from '../config/schema.ts'
import { MirrorError, messageOf } from '../core/errors.ts'
import type { EventTarget } from '../domain/image-reference.ts'
import type { SourceName } from '../domain/sources.ts'
import { activeSources } from '../domain/sources.ts'
import type { RunKind, RunTrigger } from '../store/runs/runs.ts'
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

/** The worker file beside this one: `.ts` when run from source, `.js` when built. */
function workerUrl(): URL {
  return new URL(
    import.meta.url.endsWith('.ts') ? './sync.worker.ts' : './sync.worker.js',
    import.meta.url,
  )
}

/** A thread that died is replaced after this long: long enough not to spin, short enough not to be missed. */
const RESTART_MS = 5_000

const STOPPED = 'the program is being stopped'

/** Starts the sync thread. Rejects when it cannot open the data folder; later deaths are told and mended. */
export async function startSyncThread(deps: SyncThreadDeps): Promise<SyncThread> {
  let worker: Worker | null = null // null: it died and is not replaced yet
  let stopping = false
  let death: string | null = null // the last word of a thread that died
  const send = (message: ToWorker): void => worker?.postMessage(message)
  const requests = createRequests(
    (request) => send({ type: 'run', request }),
    () => worker !== null && !stopping,
  )
  const attend = (started: Worker): void => {
    worker = started
    started.on('message', (message: FromWorker) => tell(deps, requests, message))
    started.on('error', (error) => {
      death = messageOf(error)
      deps.onFailed(null, death)
    })
    started.on('exit', () => {
      worker = null
      requests.lost(stopping ? STOPPED : `the sync thread died: ${death ?? 'it does not say why'}`)
      reviveSoon()
    })
  }
  const reviveSoon = (): void => {
    if (!stopping) setTimeout(() => void revive(), RESTART_MS).unref()
  }
  const revive = async (): Promise<void> => {
    if (stopping) return
    try {
      attend(await spawn(deps))
      requests.startWaiting()
    } catch (error) {
      requests.lost(`the sync thread cannot start: ${messageOf(error)}`)
      deps.onFailed(null, messageOf(error))
      reviveSoon()
    }
  }
  const ask = (request: RunRequest): Promise<RequestOutcome> =>
    stopping
      ? Promise.resolve({ failure: STOPPED })
      : new Promise((resolve) => requests.ask(request, resolve))
  attend(await spawn(deps))

  return {
    requestSync: (source, kind, trigger) => requests.ask({ source, kind, trigger }),
    refresh: createRefresh(activeSources(deps.config), ask),
    checkpoint: () => send({ type: 'checkpoint' }),
    rebuildArchive: () => send({ type: 'rebuild' }),
    async stop() {
      stopping = true
      const last = worker
      if (last === null) return requests.lost(STOPPED)
      const exited = new Promise((resolve) => last.once('exit', resolve))
      send({ type: 'stop' })
      await exited
    },
  }
}

function tell(deps: SyncThreadDeps, requests: Requests, message: FromWorker): void {
  if (message.type === 'progress') deps.onProgress(message.progress)
  if (message.type === 'warning') deps.onWarning?.(message.message)
  if (message.type === 'ended') deps.onEnded(message.report)
  if (message.type === 'checkpointed') deps.onCheckpoint()
  if (message.type === 'failed') deps.onFailed(message.request, message.message)
  if (message.type === 'ended') requests.ended(message.request.source, { report: message.report })
  if (message.type === 'failed' && message.request !== null)
    requests.ended(message.request.source, { failure: message.message })
}

/** Resolves once the thread has opened the data folder; rejects with its own words when it cannot. */
async function spawn(deps: SyncThreadDeps): Promise<Worker> {
  const { config, version, offline = false } = deps
  const data: WorkerStart = { config, version, offline }
  const worker = new Worker(workerUrl(), {
    workerData: data,
    // A sync makes short-lived garbage by the gigabyte; a small nursery keeps the peak of memory low at no cost in time.
    // Below 2 GB the collector lets what is not so short-lived grow twofold before it looks, above that fourfold.
    resourceLimits: { maxYoungGenerationSizeMb: 6, maxOldGenerationSizeMb: 2000 },
  })
  const first = await new Promise<FromWorker>((resolve, reject) => {
    worker.once('error', reject)
    worker.once('message', resolve)
  })
  worker.removeAllListeners('error')
  if (first.type === 'refused') throw new MirrorError(first.code, first.message)
  if (first.type === 'failed') deps.onFailed(null, first.message)
  return worker
}
