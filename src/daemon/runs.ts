import { SOURCES, type SourceName } from '../base/domain/sources.ts'
import { awaitRoom, probeStorage } from '../store/disk-state.ts'
import type { Run } from '../store/runs/runs.ts'
import type { SyncThreadDeps } from '../sync/thread.ts'
import { createRunLog, logPostponed, logRetries } from './log-lines.ts'
import type { Running, Wiring } from './running.ts'
import { type RunRetries, createRetries } from './schedule.ts'

/** Returns what the sync thread is started with: how the daemon follows its runs, and which of them are tried again. */
export function threadDeps({ config, version, log, now, offline, progress }: Wiring, on: Running): SyncThreadDeps {
  const retry = (source: SourceName): void => on.thread?.requestSync(source, 'sync', 'retry')
  const retryWithRoom = awaitRoom(config.data.dir, retry)
  const isStored = (source: SourceName) => !!on.reads?.live.snapshots.readSnapshot(source)
  const retries = (on.retries = createRetries(isStored, retry))
  const logEnded = createRunLog(log, now)
  return {
    config,
    version,
    offline,
    mayRun: () => on.gate?.mayRun() ?? true,
    onEnded(report) {
      const isLast = SOURCES.every((source) => source === report.source || progress.progressOf(source) === null)
      serveRun(on, report, isLast)
      logEnded(report)
      if (config.upstream.apiRoot !== null) retryFirst(retries, report)
      if (report.code === 'storage' || report.code === 'corrupt') on.storage?.look()
      if (report.code === 'storage') retryWithRoom(report.source)
      progress.onEnded(report)
    },
    onCheckpoint() {
      repin(on)
      on.server?.snapshotChanged() // in the same event-loop iteration: another process may have committed just now
    },
    onFailed(request, message) {
      log.error({ request }, message)
      progress.onRunLost(request?.source ?? null)
      // Not even its row could be written.
      on.storage?.look()
      const isFull = probeStorage(config.data.dir, true).state !== 'ok'
      if (request !== null && isFull) retryWithRoom(request.source)
    },
    onPostponed(request, message) {
      retries.postponed(request.source)
      logPostponed(log, request, message)
    },
    onProgress: logRetries(log, (one) => progress.onProgress(one)),
    onWarning: (message) => log.warn({}, message),
  }
}

/** Shows what a run published to all that serve or follow it. */
function serveRun(on: Running, report: Run, isLast: boolean): void {
  on.server?.snapshotChanged()
  on.gate?.committed(isLast)
  on.metrics?.countRun(report)
  on.thread?.checkpoint() // the reader has moved on, so the log can be copied
}

/** Tries a first sync again that failed: with nothing to serve yet, the next hour is too far away. */
function retryFirst(retries: RunRetries, { source, state, snapshot }: Run): void {
  if (snapshot === null && (state === 'failed' || state === 'stopped')) retries.plan(source)
}

/** Moves the pin. Nothing waits for that: what cannot be read is logged by what watches the data folder. */
function repin({ reads, storage }: Running): void {
  try {
    reads?.repin()
  } catch (error) {
    if (storage?.note(error) !== true) throw error
  }
}
