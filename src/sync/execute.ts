import { MirrorError, messageOf } from '../base/errors.ts'
import { plainText } from '../base/text.ts'
import type { SourceName } from '../base/domain/sources.ts'
import { nameStorageError } from '../store/database/faults.ts'
import type { Run, RunFacts } from '../store/runs/runs.ts'
import type { Cost } from '../upstream/http/session.ts'
import type { Upstream, UpstreamSurface } from '../upstream/surfaces.ts'
import { reconcileCatalog } from './catalog/answers/reconcile.ts'
import { createCatalogContext } from './catalog/context.ts'
import { syncCatalog } from './catalog/sync.ts'
import type { RunRequest, RunnerDeps, SyncContext, SyncResult } from './context.ts'
import { syncFeeds } from './feeds/sync.ts'
import { syncOsv } from './osv/sync.ts'
import { createRunProgress } from './progress.ts'
import { type Sessions, openSessions } from './sessions.ts'

/** The end of a run as its row stores it. */
type RunEnd = Pick<Run, 'asOf' | 'code' | 'message' | 'facts'> & {
  state: SyncResult['outcome']
}

/** Dependencies of a run, connected to the service. */
type ConnectedDeps = Omit<RunnerDeps, 'upstream'> & { readonly upstream: Upstream }

/** Executes a run. Never throws: a failure is returned as state `failed`. */
export async function executeRun(deps: ConnectedDeps, request: RunRequest, runId: number): Promise<RunEnd> {
  const facts: RunFacts = {}
  const report = deps.onProgress ?? (() => undefined)
  const { progress, onRetry } = createRunProgress(request.source, deps.now, report)
  const sessions = openSessions(deps.upstream, deps.signal, onRetry)
  try {
    const context = { ...contextOf(deps, request, sessions), runId, progress, facts }
    const result = await syncSource(context, request, sessions)
    return {
      facts: finalFacts(hasCommitted(request, result.outcome) ? facts : asPlanned(facts), sessions.cost()),
      state: result.outcome,
      asOf: result.asOf,
      code: null,
      message: plainText(result.message, 2000),
    }
  } catch (error) {
    const failure = toMirrorError(error, deps)
    return {
      facts: finalFacts(asPlanned(facts), sessions.cost()),
      state: failure.code === 'aborted' ? 'stopped' : 'failed',
      asOf: null,
      code: failure.code,
      message: plainText(failure.message, 2000),
    }
  }
}

function contextOf(
  { config, store, now, limits = {} }: ConnectedDeps,
  { source, kind, full = false, dryRun = false, suspectIds = [], targets = [] }: RunRequest,
  sessions: Sessions,
): Omit<SyncContext, 'runId' | 'progress' | 'facts'> {
  return {
    source,
    config,
    store,
    session: sessions.of(MAIN_SURFACE[source]),
    kind,
    full,
    dryRun,
    suspectIds: new Set(suspectIds),
    targets,
    limits,
    now,
  }
}

/** The surface of the service that a source's run uses first. */
const MAIN_SURFACE: Record<SourceName, UpstreamSurface> = {
  osv: 'public',
  feeds: 'public',
  catalog: 'remediation',
  identity: 'identity',
}

function syncSource(context: SyncContext, { source, approved }: RunRequest, sessions: Sessions): Promise<SyncResult> {
  if (source === 'feeds') return syncFeeds(context, approved ?? null)
  if (source === 'osv') return syncOsv(context, approved ?? null)
  const catalog = createCatalogContext(context, sessions)
  if (context.kind === 'reconcile') return reconcileCatalog(catalog)
  return syncCatalog(catalog, approved ?? null)
}

/** Names of the facts that count changes of the mirror. */
const CHANGES: ReadonlySet<string> = new Set(
  'added changed removed removedIds lists arrived documents documentsDropped'.split(' '),
)

/**
 * Returns whether the counted changes are stored: a quarantined run publishes nothing, except that each feed is
 * guarded on its own.
 */
function hasCommitted({ source, dryRun }: RunRequest, outcome: SyncResult['outcome']): boolean {
  return dryRun !== true && (outcome !== 'quarantined' || source === 'feeds')
}

/** Returns the facts of a run that committed nothing: its changes are named as planned (`plannedAdded`). */
function asPlanned(facts: RunFacts): RunFacts {
  const planned = (key: string): string => `planned${key.charAt(0).toUpperCase()}${key.slice(1)}`
  return Object.fromEntries(Object.entries(facts).map(([key, value]) => [CHANGES.has(key) ? planned(key) : key, value]))
}

function finalFacts(facts: RunFacts, { requests, bytes, retries }: Cost): RunFacts {
  const printable = Object.fromEntries(Object.entries(facts).map(([key, value]) => [key, plainFact(value)]))
  return { ...printable, requests, bytes, retries }
}

function plainFact(value: RunFacts[string]): RunFacts[string] {
  if (typeof value === 'string') return plainText(value)
  return typeof value === 'object' && value !== null ? value.map((text) => plainText(text)) : value
}

/**
 * Converts an error to a `MirrorError`; an error of unknown type is an internal defect and stays in `cause` with its
 * stack.
 */
function toMirrorError(error: unknown, { config, signal }: ConnectedDeps): MirrorError {
  if (signal.aborted) {
    return new MirrorError('aborted', 'stopped on request; nothing was committed', { cause: error })
  }
  const failure = nameStorageError(error, config.data.dir)
  return failure instanceof MirrorError ? failure : new MirrorError('internal', messageOf(error), { cause: error })
}
