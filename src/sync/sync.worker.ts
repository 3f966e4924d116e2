import { parentPort, workerData } from 'node:worker_threads'
import { setPriority } from 'node:os'
import type { Config } from '../config/schema.ts'
import { type ErrorCode, MirrorError, messageOf } from '../core/errors.ts'
import { goOffline } from '../core/offline.ts'
import { acquireLock } from '../store/database/lock.ts'
import { type Writes, openWrites } from '../store/writer.ts'
import { createUpstream } from '../upstream/surfaces.ts'
import { rebuildLostArchive } from '../archive/build.ts'
import { type RunReport, type RunRequest, createRunner } from './runner.ts'
import type { Progress } from './context.ts'

/** What the sync thread is started with. */
export interface WorkerStart {
  config: Config
  version: string
  offline: boolean
}

export type ToWorker =
  | { type: 'run'; request: RunRequest }
  | { type: 'checkpoint' }
  /** The derived archive is gone: make it again. */
  | { type: 'rebuild' }
  | { type: 'stop' }

export type FromWorker =
  | { type: 'ready' }
  | { type: 'progress'; progress: Progress }
  | { type: 'ended'; request: RunRequest; report: RunReport }
  | { type: 'failed'; request: RunRequest | null; message: string }
  /** What an operator should know and no run says. */
  | { type: 'warning'; message: string }
  /** The data folder cannot be opened; the thread ends. */
  | { type: 'refused'; code: ErrorCode; message: string }
  | { type: 'checkpointed' }
  | { type: 'stopped' }

/**
 * The sync thread: the daemon's only writer. It has its own connection and a lower priority than the thread
 * that answers requests, so that a sync never delays a read.
 */
function main(port: NonNullable<typeof parentPort>): void {
  const { config, version, offline } = workerData as WorkerStart
  if (offline) goOffline()
  lowerPriority()
  const send = (message: FromWorker): void => port.postMessage(message)
  const store = open(config.data.dir, send)
  if (store === null) return port.close()
  const upstream = createUpstream({
    ...{ config, version, now: Date.now },
    warn: (message) => send({ type: 'warning', message }),
  })
  const stop = new AbortController()
  const runner = createRunner({
    config,
    store,
    upstream,
    now: Date.now,
    signal: stop.signal,
    onProgress: paced((progress) => send({ type: 'progress', progress })),
  })
  const running = new Set<Promise<void>>()
  let rebuilding: Promise<void> | null = null

  const run = async (request: RunRequest): Promise<void> => {
    try {
      send({ type: 'ended', request, report: await runner.run(request) })
    } catch (error) {
      send({ type: 'failed', request, message: messageOf(error) })
    }
  }

  const end = async (): Promise<void> => {
    stop.abort()
    await Promise.all([...running, rebuilding])
    await upstream.close()
    store.close()
    send({ type: 'stopped' })
    port.close()
  }

  port.on('message', (message: ToWorker) => {
    if (message.type === 'stop') void end()
    else if (message.type === 'checkpoint') {
      store.checkpoint()
      send({ type: 'checkpointed' })
    } else if (message.type === 'rebuild') {
      // While a run holds the lock, it is that run's to do; readers ask again.
      rebuilding ??= repair(store, config.data.dir)
        .then((ended) => (ended.type === 'failed' ? send(ended) : undefined))
        .finally(() => (rebuilding = null))
    } else {
      const turn = run(message.request).finally(() => running.delete(turn))
      running.add(turn)
    }
  })
  void repair(store, config.data.dir).then(send)
}

/** A message to the other thread costs more than an item of many a list: so many milliseconds lie between two of a phase. */
const PROGRESS_MS = 50

/** Passes on the first and the last progress of each phase, and in between what comes when the last is some time ago. */
function paced(tell: (progress: Progress) => void): (progress: Progress) => void {
  const told = new Map<string, number>()
  return (progress) => {
    const phase = `${progress.source} ${progress.phase}`
    const now = performance.now()
    if (progress.done !== progress.total && now - (told.get(phase) ?? -PROGRESS_MS) < PROGRESS_MS)
      return
    told.set(phase, now)
    tell(progress)
  }
}

function open(dataDir: string, send: (message: FromWorker) => void): Writes | null {
  try {
    return openWrites(dataDir)
  } catch (error) {
    const code = error instanceof MirrorError ? error.code : 'internal'
    send({ type: 'refused', code, message: messageOf(error) })
    return null
  }
}

/**
 * Ends in the log the runs that a killed process left open, and rebuilds a derived archive that is gone. Not while
 * another process syncs: what looks left over is then its own. What cannot be rebuilt is told; all else is served.
 */
async function repair(store: Writes, dataDir: string): Promise<FromWorker> {
  try {
    const lock = acquireLock(dataDir, 'sync')
    try {
      store.closeOrphanRuns(Date.now())
      await rebuildLostArchive(store, dataDir)
    } finally {
      lock.release()
    }
  } catch (error) {
    const busy = error instanceof MirrorError && error.code === 'locked'
    if (!busy) return { type: 'failed', request: null, message: messageOf(error) }
  }
  return { type: 'ready' }
}

/** On Linux a priority belongs to the thread that sets it; elsewhere it would slow the whole process, so not there. */
function lowerPriority(): void {
  if (process.platform !== 'linux') return
  try {
    setPriority(0, 10)
  } catch {
    // Not permitted in some sandboxes; reads then compete with the sync, nothing worse.
  }
}

if (parentPort !== null) main(parentPort)
