import { join } from 'node:path'
import type { Config } from '../config/schema.ts'
import { MirrorError, messageOf } from '../errors.ts'
import { nameStorageError } from '../store/database.ts'
import { contentOf, sizeOf } from '../store/gzip.ts'
import { makeFolder } from '../store/folder.ts'
import { acquireLock } from '../store/lock.ts'
import type { Quarantine } from '../store/quarantine.ts'
import type { Run, RunFacts, RunKind, RunTrigger, SourceName } from '../store/runs.ts'
import type { Writes } from '../store/writes.ts'
import type { Client } from '../upstream/client.ts'
import type { Session } from '../upstream/session.ts'
import type { Progress, SyncContext, SyncResult } from './context.ts'
import { syncFeeds } from './feeds.ts'
import { parseIndex } from './osv-index.ts'
import { plainText } from './plain-text.ts'
import { syncOsv } from './osv.ts'

/** Which source to run, in what way, and who asked. */
export interface RunRequest {
  source: SourceName
  kind: RunKind
  trigger: RunTrigger
  full?: boolean
  dryRun?: boolean
  /** The quarantined run that someone approved; `kind` is then `approve`. */
  approved?: Quarantine
  /** Ids whose stored bytes are not to be believed: fetched again whatever their checksums say. */
  distrust?: readonly string[]
}

/** What a runner works with; `signal` ends the run in flight. */
export interface RunnerDeps {
  config: Config
  store: Writes
  client: Client
  now: () => number
  signal: AbortSignal
  onProgress?: (progress: Progress) => void
}

/** The run as its row tells it; `id` 0 for a dry run, which leaves no row. */
export type RunReport = Run

/** Runs sources, one run of each at a time. */
export interface Runner {
  /**
   * Runs a source once. Never throws for a run that failed: the report says so. Throws `locked`, and `storage` or
   * `corrupt` when not even the run's row can be written.
   */
  run(request: RunRequest): Promise<RunReport>
}

/**
 * One run per source at a time, in this process and across processes; every run leaves a row, also one that fails.
 * Log once, here at the boundary: the row is the log of a run.
 */
export function createRunner(deps: RunnerDeps): Runner {
  const { config, store } = deps
  let running = 0
  let release: (() => void) | null = null
  makeFolder(join(config.data.dir, 'downloads'))

  /** The lock is held while any source runs, and orphans of a killed process are closed when it is taken. */
  const enter = async (): Promise<void> => {
    if (running++ > 0) return
    try {
      const lock = acquireLock(config.data.dir, 'sync')
      release = () => lock.release()
      await store.exclusive(() => store.closeOrphanRuns(deps.now()))
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
    async run(request) {
      try {
        await enter()
        try {
          return await (request.dryRun === true ? dryRun(deps, request) : recorded(deps, request))
        } finally {
          leave()
        }
      } catch (error) {
        throw nameStorageError(error, config.data.dir)
      }
    },
  }
}

async function recorded(deps: RunnerDeps, request: RunRequest): Promise<RunReport> {
  const { store, now, config } = deps
  const { source, kind, trigger } = request
  const runId = await store.exclusive(() =>
    store.startRun({ source, kind, trigger, startedAt: now() }),
  )
  const ended = await perform(deps, request, runId)
  const snapshot = store.readSnapshot(source)?.id ?? null
  await store.exclusive(() => {
    store.endRun(runId, { ...ended, snapshot, endedAt: now() })
    store.pruneRuns(source, config.data.keepRuns)
    store.forgetQuarantines(now() - config.data.tombstoneDays * 86_400_000)
  })
  const run = store.readRun(runId)
  if (run === null) throw new MirrorError('internal', `run ${runId} left no row`)
  return run
}

async function dryRun(deps: RunnerDeps, request: RunRequest): Promise<RunReport> {
  const startedAt = deps.now()
  const ended = await perform(deps, request, 0)
  const { source, kind, trigger } = request
  const snapshot = deps.store.readSnapshot(source)?.id ?? null
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

type Ended = Pick<Run, 'asOf' | 'code' | 'message' | 'facts'> & { state: SyncResult['outcome'] }

async function perform(deps: RunnerDeps, request: RunRequest, runId: number): Promise<Ended> {
  const facts: RunFacts = {}
  const session = deps.client.open(deps.signal)
  const context = contextOf(deps, request, runId, session, facts)
  try {
    const result = await sync(context, request)
    return {
      ...end(facts, session),
      state: result.outcome,
      asOf: result.asOf,
      code: null,
      message: plainText(result.message, 2000),
    }
  } catch (error) {
    const named = nameFailure(error, deps)
    return {
      ...end(facts, session),
      state: 'failed',
      asOf: null,
      code: named.code,
      message: plainText(named.message, 2000),
    }
  }
}

function contextOf(
  { config, store, now, onProgress }: RunnerDeps,
  { kind, full = false, dryRun = false, distrust = [] }: RunRequest,
  runId: number,
  session: Session,
  facts: RunFacts,
): SyncContext {
  const progress = onProgress ?? (() => undefined)
  const doubted = new Set(distrust)
  return { config, store, session, runId, kind, full, dryRun, doubted, now, progress, facts }
}

function sync(context: SyncContext, { source, approved }: RunRequest): Promise<SyncResult> {
  if (source === 'feeds') return syncFeeds(context, approved ?? null)
  if (approved === undefined) return syncOsv(context, null)
  const { body, etag, lastModified, asOf } = approved
  const bytes = contentOf(body, sizeOf(body))
  return syncOsv(context, {
    index: parseIndex(bytes),
    held: false,
    gzip: body,
    etag,
    lastModified,
    asOf,
  })
}

function end(facts: RunFacts, { cost }: Session): { facts: RunFacts } {
  const { asOf: _confirmed, ...found } = facts
  const told = Object.fromEntries(
    Object.entries(found).map(([key, value]) => [key, plainFact(value)]),
  )
  return { facts: { ...told, requests: cost.requests, bytes: cost.bytes, retries: cost.retries } }
}

function plainFact(value: RunFacts[string]): RunFacts[string] {
  if (typeof value === 'string') return plainText(value)
  return typeof value === 'object' && value !== null ? value.map((text) => plainText(text)) : value
}

/** A run's failure in the program's own terms; what has no name is a defect of ours and keeps its stack in `cause`. */
function nameFailure(error: unknown, { config, signal }: RunnerDeps): MirrorError {
  if (signal.aborted) {
    return new MirrorError('aborted', 'stopped on request; nothing was committed', { cause: error })
  }
  const named = nameStorageError(error, config.data.dir)
  return named instanceof MirrorError
    ? named
    : new MirrorError('internal', messageOf(error), { cause: error })
}
