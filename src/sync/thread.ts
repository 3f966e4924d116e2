import { join } from 'node:path'
import { isLost } from '../archive/lost.ts'
import type { Config } from '../config/schema.ts'
import { AWAITED_LISTS, REFRESHED_SOURCES, type RefreshOutcome } from '../base/domain/event-types.ts'
import type { EventTarget } from '../base/domain/image-reference.ts'
import { type SourceName, activeSources } from '../base/domain/sources.ts'
import { derivedDir } from '../store/database/open.ts'
import type { Reads } from '../store/reads.ts'
import type { Run, RunKind, RunTrigger } from '../store/runs/runs.ts'
import { supervise } from '../base/threads/supervisor.ts'
import { workerFile } from '../base/threads/worker-file.ts'
import type { Progress, RunRequest } from './context.ts'
import { type RequestOutcome, type RunQueue, createRunQueue } from './run-queue.ts'
import type { FromWorker, ToWorker, WorkerStart } from './sync.worker.ts'

/** The sync thread's interface for other threads. */
export type SyncThread = ReturnType<typeof startSyncThread>

/** Start data and event handlers of the thread. */
export interface SyncThreadDeps {
  config: Config
  version: string
  /** Blocks every outgoing connection of the thread. */
  offline?: boolean
  /** Whether runs may start now; those that may not wait for `resume`. Missing: at any time. */
  mayRun?: () => boolean
  onEnded(report: Run): void
  /** Called for a run that could not start, and for a failure of the thread; `request` is null then. */
  onFailed(request: RunRequest | null, message: string): void
  /** Called for a run that is tried again in a minute; `message` names the process that writes to the data folder. */
  onPostponed?(request: RunRequest, message: string): void
  /** The pause until then, milliseconds; a minute when not given. */
  lockedRetryMs?: number
  onProgress(progress: Progress): void
  /** Called with a warning for the operator that is not part of a run. */
  onWarning?(message: string): void
  /** Called after a checkpoint: readers should open a new snapshot. */
  onCheckpoint(): void
}

const STOPPED = 'the program is stopping'

/**
 * Reports whether the sync thread repairs something before it is ready: until then the archive cannot be served, or a run that was
 * killed seems to be running.
 */
export function needsRepair({ osv, runs }: Pick<Reads, 'osv' | 'runs'>, dataDir: string): boolean {
  const info = osv.readArchive()
  return runs.hasOpenRun() || (info !== null && isLost(join(derivedDir(dataDir), info.file), info.size))
}

/** Starts the sync thread. Once it was ready, crashes are reported, and the thread is restarted. */
export function startSyncThread(deps: SyncThreadDeps) {
  const { config, version, offline = false } = deps
  let stopping = false
  const requests = createRunQueue(
    (request) => supervisor.post({ type: 'run', request }),
    () => !stopping && supervisor.isReady && (deps.mayRun?.() ?? true),
  )
  const supervisor = supervise<ToWorker, FromWorker>({
    file: workerFile('sync.worker', import.meta.url),
    data: () => ({ config: withoutServing(config), version, offline }) satisfies WorkerStart,
    // A sync allocates gigabytes of short-lived objects. With a young generation of 6 MB, a catalog's small answers cause twice
    // as many collections as with 12, in which the requests under way survive; a larger one only raises peak memory. With an
    // old generation below 2 GB V8 lets the heap grow twofold between collections, above that fourfold.
    limits: { maxYoungGenerationSizeMb: 12, maxOldGenerationSizeMb: 2000 },
    mustStart: true,
    onMessage: (message) => dispatch(deps, requests, message),
    onReady: () => requests.startWaiting(),
    onFailed(message, wasReady) {
      const why = `the sync thread ${wasReady ? 'ended' : 'cannot start'}: ${message}`
      const lost = requests.fail(why).map(({ source, kind }) => `${source} ${kind}`)
      const withIt = lost.length === 0 ? '' : `. These runs ended with it: ${lost.join(', ')}`
      deps.onFailed(null, `${why}${withIt}. It is started again after a pause`)
    },
    onEnded: (failure) =>
      requests.fail(stopping ? STOPPED : `the sync thread ended: ${failure ?? 'it reported no error'}`),
  })
  const ask = (request: RunRequest): Promise<RequestOutcome> =>
    stopping ? Promise.resolve({ failure: STOPPED }) : new Promise((resolve) => requests.ask(request, resolve))
  const { started } = supervisor
  started.catch(() => undefined) // reported to the caller that waits for it
  return {
    /** Resolves when the thread is ready; runs that are requested before wait. Rejects when it cannot open the data folder. */
    started,
    /**
     * Queues a run. A source has one run at a time: requests during a run coalesce into one more run after it, of the
     * more thorough kind.
     */
    requestSync: (source: SourceName, kind: RunKind, trigger: RunTrigger): void =>
      requests.ask({ source, kind, trigger }),
    /** Queues a run as `requestSync` does. Resolves when it has ended, or cannot be made; never rejects. */
    request: ask,
    /**
     * Starts a refresh immediately for the targets of events (none: for all that changed): the catalog lists that an
     * event can change, if a credential is configured, and the public feeds. The run of each source starts after the
     * call; a waiting run serves both requests. Never rejects; see `RefreshOutcome` for what counts as success.
     */
    refresh: createRefresh(activeSources(config), ask),
    /** Starts the runs that waited while `mayRun` said no. */
    resume: (): void => requests.startWaiting(),
    /** Aborts the current runs, which commit nothing; waiting ones stay. */
    abort(): void {
      if (supervisor.isReady) supervisor.post({ type: 'abort' })
    },
    checkpoint: (): void => supervisor.post({ type: 'checkpoint' }),
    /**
     * Rebuilds the derived archive if it is missing, and verifies the signatures of what was imported; does nothing during a run, which
     * does both itself.
     */
    rebuildArchive: (): void => supervisor.post({ type: 'rebuild' }),
    /** Aborts the current run, which commits nothing, and ends the thread. */
    async stop(): Promise<void> {
      stopping = true
      await supervisor.stop()
      requests.fail(STOPPED)
    },
  }
}

/** Returns settings without the keys and secrets of the serving side, with which the thread has no business. */
function withoutServing(config: Config): Config {
  return {
    ...config,
    server: { ...config.server, keys: [] },
    relay: { ...config.relay, secret: null, targets: [] },
    webhooks: { ...config.webhooks, secrets: [] },
  }
}

function dispatch(deps: SyncThreadDeps, requests: RunQueue, message: FromWorker): void {
  switch (message.type) {
    case 'progress':
      return deps.onProgress(message.progress)
    case 'warning':
      return deps.onWarning?.(message.message)
    case 'checkpointed':
      return deps.onCheckpoint()
    case 'ended':
      deps.onEnded(message.report)
      return requests.ended(message.request.source, { report: message.report })
    case 'failed':
      failed(deps, requests, message)
      if (message.request !== null) requests.ended(message.request.source, { failure: message.message })
  }
}

/** Pause before a run that found another process writing is tried again, milliseconds. */
const LOCKED_RETRY_MS = 60_000

/** Tries a run again for which there was no lock: the next schedule may be an hour away. Events have their own retries. */
function failed(
  deps: SyncThreadDeps,
  requests: RunQueue,
  { request, message, isLocked }: Extract<FromWorker, { type: 'failed' }>,
): void {
  if (request === null || !isLocked || request.trigger === 'webhook') return deps.onFailed(request, message)
  deps.onPostponed?.(request, message)
  setTimeout(() => requests.ask(request), deps.lockedRetryMs ?? LOCKED_RETRY_MS).unref()
}

/**
 * Creates the refresh function; `ask` requests one run. The catalog run fetches only what an event can change. `reports`: the runs that
 * took place, in the order of the sources.
 */
function createRefresh(
  active: readonly SourceName[],
  ask: (request: RunRequest) => Promise<RequestOutcome>,
): (targets: readonly EventTarget[]) => Promise<RefreshOutcome & { reports: Run[] }> {
  const sources = active.filter((source) => REFRESHED_SOURCES.includes(source))
  return async (targets) => {
    const outcomes = await Promise.all(
      sources.map((source) =>
        ask(
          source === 'catalog'
            ? { source, kind: 'refresh', trigger: 'webhook', targets }
            : { source, kind: 'sync', trigger: 'webhook' },
        ),
      ),
    )
    const reports = outcomes.flatMap((outcome) => ('report' in outcome ? [outcome.report] : []))
    const refusals = outcomes.map((outcome) => ('failure' in outcome ? [outcome.failure] : refusalsOf(outcome.report)))
    const reason = joined(refusals.flat())
    const ofCatalog = refusals[sources.indexOf('catalog')] ?? refusals.flat()
    return { reports, ok: reason === null, reason, imageReason: joined(ofCatalog) }
  }
}

function joined(reasons: readonly string[]): string | null {
  return reasons.length === 0 ? null : [...new Set(reasons)].join('; ')
}

function refusalsOf({ source, state, message, facts }: Run): string[] {
  const failed = state === 'failed' || state === 'stopped' || (state === 'quarantined' && source === 'catalog')
  if (failed) return [`${source}: ${state}: ${message ?? ''}`]
  const lists = facts['listsFailed']
  if (source !== 'catalog' || !Array.isArray(lists)) return []
  const missing = AWAITED_LISTS.filter((path) => lists.includes(path))
  return missing.map((path) => `${source}: ${path} could not be read`)
}
