import { parentPort, workerData } from 'node:worker_threads'
import type { Config } from '../config/schema.ts'
import { MirrorError, messageOf } from '../base/errors.ts'
import { goOffline } from '../base/offline.ts'
import { createDue } from '../base/pacing.ts'
import { openWrites } from '../store/writes.ts'
import { collectWhenIdle } from '../base/threads/idle-memory.ts'
import { type StopMessage, type WorkerStarted, openOrRefuse } from '../base/threads/supervisor.ts'
import { lowerPriority } from '../base/threads/worker-file.ts'
import type { Upstream, UpstreamDeps } from '../upstream/surfaces.ts'
import { repair } from './repair.ts'
import type { Run } from '../store/runs/runs.ts'
import { type Runner, createRunner } from './runner.ts'
import type { Progress, RunRequest } from './context.ts'

/** Data that the sync thread is started with. */
export interface WorkerStart {
  config: Config
  version: string
  offline: boolean
}

export type ToWorker =
  | { type: 'run'; request: RunRequest }
  | { type: 'checkpoint' }
  /** Stop the current runs, which commit nothing then. */
  | { type: 'abort' }
  /** Rebuild the derived archive if it is missing, and verify the signatures of what was imported. */
  | { type: 'rebuild' }
  | StopMessage

export type FromWorker =
  | { type: 'progress'; progress: Progress }
  | { type: 'ended'; request: RunRequest; report: Run }
  /** `isLocked`: another process writes to the data folder. */
  | { type: 'failed'; request: RunRequest | null; message: string; isLocked: boolean }
  /** A warning for the operator that is not part of a run. */
  | { type: 'warning'; message: string }
  | { type: 'checkpointed' }

/**
 * The sync thread, the daemon's only writer. It has its own database connection and a lower priority than the thread
 * that answers requests, so that a sync does not delay reads.
 */
function main(port: NonNullable<typeof parentPort>): void {
  const { config, version, offline } = workerData as WorkerStart
  if (offline) goOffline()
  lowerPriority(10)
  const send = (message: FromWorker | WorkerStarted): void => port.postMessage(message)
  const store = openOrRefuse(port, () => openWrites(config.data.dir))
  if (store === null) return
  collectWhenIdle()
  const warn = (message: string): void => send({ type: 'warning', message })
  const service = createConnection({ config, version, now: Date.now, warn })
  let stop = new AbortController()
  const onProgress = limitProgress((progress) => send({ type: 'progress', progress }))
  const common = { config, store, upstream: service.connect, now: Date.now }
  const newRunner = (): Runner => createRunner({ ...common, signal: stop.signal, onProgress })
  let runner = newRunner()
  let rebuilding = null as Promise<void> | null
  const running = new Set<Promise<void>>()
  const repairAll = async (): Promise<void> => {
    const failure = await repair(store, config)
    if (failure !== null) send({ type: 'failed', request: null, message: failure, isLocked: false })
  }
  const rebuild = (): Promise<void> => (rebuilding ??= repairAll().finally(() => (rebuilding = null)))

  const run = async (request: RunRequest): Promise<void> => {
    try {
      send({ type: 'ended', request, report: await runner.run(request) })
    } catch (error) {
      send({ type: 'failed', request, message: messageOf(error), isLocked: isLocked(error) })
    }
  }

  const end = async (): Promise<void> => {
    stop.abort()
    await Promise.all([...running, rebuilding])
    await service.close()
    store.close()
    port.close()
  }

  port.on('message', (message: ToWorker) => {
    if (message.type === 'stop') void end()
    else if (message.type === 'checkpoint') {
      store.checkpoint()
      send({ type: 'checkpointed' })
    } else if (message.type === 'abort') {
      stop.abort()
      stop = new AbortController()
      runner = newRunner()
    } else if (message.type === 'rebuild') {
      // A run that has the lock rebuilds the archive itself; readers request it again.
      void rebuild()
    } else {
      const current = run(message.request).finally(() => running.delete(current))
      running.add(current)
    }
  })
  void rebuild().then(() => send({ type: 'ready' }))
}

function isLocked(error: unknown): boolean {
  return error instanceof MirrorError && error.code === 'locked'
}

/** Creates the connection to the service: its modules are loaded at the first use. */
function createConnection(deps: UpstreamDeps) {
  let connecting: Promise<Upstream> | null = null
  const load = async (): Promise<Upstream> => {
    const { createUpstream } = await import('../upstream/surfaces.ts')
    return createUpstream(deps)
  }
  return {
    connect: (): Promise<Upstream> => (connecting ??= load()),
    close: async (): Promise<void> => (await connecting)?.close(),
  }
}

/**
 * Minimum interval between two progress messages of a phase, milliseconds: a message to another thread costs more
 * than processing many an item.
 */
const PROGRESS_MS = 50

/** Limits progress messages: passes the first and the last of each phase, those of repeated requests, and others at most every `PROGRESS_MS`. */
function limitProgress(report: (progress: Progress) => void): (progress: Progress) => void {
  const isDue = createDue(PROGRESS_MS)
  return (progress) => {
    const { source, phase, done, total, retry } = progress
    if (retry !== undefined || done === total || isDue(`${source} ${phase}`)) report(progress)
  }
}

if (parentPort !== null) main(parentPort)
