import { join } from 'node:path'
import { DAY_MS } from '../base/time.ts'
import { MirrorError } from '../base/errors.ts'
import { operatorName } from '../base/domain/run-facts.ts'
import { nameStorageError, namingFaults } from '../store/database/faults.ts'
import { makeFolder } from '../base/files.ts'
import { acquireLock } from '../store/database/lock.ts'
import { scopeFact, settingDigests } from '../store/runs/run-scope.ts'
import { timeOfAges } from '../store/runs/age-limit.ts'
import type { Run, RunKind } from '../store/runs/runs.ts'
import type { RunRequest, RunnerDeps } from './context.ts'

/** Runs sources, and keeps other processes from it while one runs. */
export interface Runner {
  /**
   * Runs a source once. Returns the run as its row stores it; the `id` of a dry run, which leaves no row, is 0. Does not throw for a
   * failed run: see its state. Throws `locked`, and `storage` or `corrupt` when the run's row cannot be written.
   */
  run(request: RunRequest): Promise<Run>
}

/**
 * Creates a runner. Who asks keeps a source to one run at a time (`run-queue.ts`). Every run leaves a row, a failed one too;
 * that row is the only log of a run. Throws `storage` where the data folder cannot have downloads.
 */
export function createRunner(deps: RunnerDeps): Runner {
  const { config, store } = deps
  let running = 0
  let release: (() => void) | null = null
  namingFaults(config.data.dir, () => makeFolder(join(config.data.dir, 'downloads')))

  /** Takes the sync lock, which is kept while any source runs, and closes the runs that a killed process left open. */
  const enter = async (): Promise<void> => {
    if (running++ > 0) return
    try {
      const lock = acquireLock(config.data.dir, 'sync')
      release = () => lock.release()
      await store.exclusive(() => store.runs.closeOrphanRuns(deps.now()))
    } catch (error) {
      leave()
      throw error
    }
  }
  const leave = (): void => {
    if (--running > 0) return
    release?.()
    release = null
  }

  return {
    async run(asked) {
      try {
        const request = {
          ...asked,
          kind: kindOf(asked, store.snapshots.readSnapshot(asked.source) !== null),
        }
        await enter()
        try {
          return await (request.dryRun === true ? dryRun(deps, request) : recordedRun(deps, request))
        } finally {
          leave()
        }
      } catch (error) {
        throw nameStorageError(error, config.data.dir)
      }
    },
  }
}

/**
 * Returns the kind to run: a refresh needs a catalog snapshot; without one, or for another source, it becomes a sync.
 */
function kindOf({ source, kind, full }: RunRequest, hasSnapshot: boolean): RunKind {
  if (kind !== 'refresh') return kind
  return source === 'catalog' && full !== true && hasSnapshot ? 'refresh' : 'sync'
}

/**
 * Loads what fetches and stores, and connects to the service, with the first run: a daemon is ready without these hundred
 * modules.
 */
async function loadRun(deps: RunnerDeps) {
  const [{ executeRun }, upstream] = await Promise.all([import('./execute.ts'), deps.upstream()])
  return (request: RunRequest, runId: number) => executeRun({ ...deps, upstream }, request, runId)
}

async function recordedRun(deps: RunnerDeps, request: RunRequest): Promise<Run> {
  const execute = await loadRun(deps)
  const { store, now, config } = deps
  const { source, kind, trigger } = request
  const { damaged } = request
  if (damaged !== undefined) await store.exclusive(() => store.catalog.invalidate(damaged))
  const runId = await store.exclusive(() => store.runs.startRun({ source, kind, trigger, startedAt: now() }))
  const done = await execute(request, runId)
  // Who gave the command: a run of the daemon is given by no one.
  const by = trigger === 'command' ? { by: operatorName() } : {}
  const published = store.snapshots.readSnapshot(source)
  const facts = { scopeSettings: settingDigests(config, source), ...scopeFact(published), ...done.facts, ...by }
  const ended = { ...done, facts }
  const snapshot = published?.id ?? null
  await store.exclusive(() => {
    store.runs.endRun(runId, { ...ended, snapshot, endedAt: now() })
    store.runs.pruneRuns(source, deps.limits?.keepRuns)
    const at = timeOfAges(store, now())
    store.quarantine.forgetQuarantines(at - config.data.historyDays * DAY_MS)
    store.changes.forgetOldChanges(source, at, config)
  })
  const run = store.runs.readRun(runId)
  if (run === null) throw new MirrorError('internal', `run ${runId} left no row`)
  return run
}

async function dryRun(deps: RunnerDeps, request: RunRequest): Promise<Run> {
  const execute = await loadRun(deps)
  const startedAt = deps.now()
  const ended = await execute(request, 0)
  const { source, kind, trigger } = request
  const snapshot = deps.store.snapshots.readSnapshot(source)?.id ?? null
  return {
    id: 0,
    source,
    kind,
    trigger,
    pid: process.pid,
    startedAt,
    ...ended,
    snapshot,
    endedAt: deps.now(),
  }
}
